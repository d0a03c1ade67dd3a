/**
 * One write transaction of the SQLite store. It holds the write lock from its start, so what it reads stays true until
 * it commits; rows are written back once, when work is selected or the transaction ends.
 */
import {
  type DefinitionRecord,
  type Job,
  laneOf,
  limits,
  STATE,
  type Submission,
  stateIsTerminal,
} from '../../core/index.ts';
import { packLedger, submissionText } from '../../evidence/index.ts';
import type { ViewSource } from '../engine/views.ts';
import { NumbersExhaustedError } from '../errors.ts';
import type { EffectPlace, EffectRow, KeyRow, Picker, QueueRow, Row, Session } from '../session.ts';
import type { Act, ClaimRequest, Testimony } from '../store.ts';
import type { Catalogue, Route } from './catalogue.ts';
import { routePicker } from './picker.ts';
import { Columns, liveValues, settledValues } from './rows.ts';
import { effectAt, keyRow, loadRow, payloadOf, queueRow, testimonyOf } from './source.ts';
import type { Statements } from './statements.ts';

/** The counter row as it was when the transaction began. */
export interface Counter {
  readonly nextId: number;
  readonly nextToken: number;
}

/** How long a worker's liveness may be behind: not every claim is worth a write. */
export const SEEN_WITHIN_MS = 10_000;

/** What a worker can run, as its row says it. */
export function knownText(known: readonly { readonly kind: string; readonly revision: number }[]): string {
  return JSON.stringify(known.map(({ kind, revision }) => ({ kind, revision })));
}

/** A row in this transaction, and what of it is not in the database yet. */
interface Held {
  row: Row;
  /** Whether a live row of it is in the database. */
  stored: 'live' | 'settled' | 'new';
  dirty: boolean;
  ledger: Uint8Array;
  pages: number;
  payload: string | null;
  entries: Uint8Array[];
  texts: Map<string, string>;
}

export class SqliteSession implements Session {
  readonly now: number;
  readonly keepKeysForMs: number;
  readonly #sql: Statements;
  readonly #catalogue: Catalogue;
  readonly #newId: () => string;
  readonly #held = new Map<number, Held>();
  readonly #dirty = new Set<Held>();
  readonly #queues = new Map<string, QueueRow | undefined>();
  readonly #picked = new Set<number>();
  readonly woken: Set<string> = new Set();
  #nextId: number;
  #nextToken: number;
  /** The tick the commit will leave behind. */
  lastTick: number;
  /** Whether anything was written that has to be committed. */
  changed = false;

  constructor(
    sql: Statements,
    catalogue: Catalogue,
    counter: Counter,
    given: { readonly now: number; readonly keepKeysForMs: number; readonly randomId: () => string },
  ) {
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#nextId = counter.nextId;
    this.#nextToken = counter.nextToken;
    this.now = given.now;
    this.lastTick = given.now;
    this.keepKeysForMs = given.keepKeysForMs;
    this.#newId = given.randomId;
  }

  get counter(): Counter {
    return { nextId: this.#nextId, nextToken: this.#nextToken };
  }

  /** Takes over the counters of a restored store. */
  setCounters(counter: Counter, lastTick: number): void {
    this.#nextId = counter.nextId;
    this.#nextToken = counter.nextToken;
    this.lastTick = lastTick;
    this.changed = true;
  }

  randomId(): string {
    return this.#newId();
  }

  row(id: number): Row | undefined {
    return this.#hold(id)?.row;
  }

  #hold(id: number): Held | undefined {
    const held = this.#held.get(id);
    if (held !== undefined) return held;
    const loaded = loadRow(this.#sql, this.#catalogue, id);
    if (loaded === undefined) return undefined;
    const stored = stateIsTerminal(loaded.row.job.state) ? 'settled' : 'live';
    const entry: Held = { ...loaded, stored, dirty: false, payload: null, entries: [], texts: new Map() };
    this.#held.set(id, entry);
    return entry;
  }

  payload(id: number): string {
    const held = this.#held.get(id);
    return held?.payload ?? payloadOf(this.#sql, id);
  }

  insert(row: Row, payload: string): void {
    const held: Held = {
      row: { ...row, chain: { ...row.chain, entries: [] }, texts: {} },
      stored: 'new',
      dirty: true,
      ledger: new Uint8Array(),
      pages: 0,
      payload,
      entries: [...row.chain.entries],
      texts: new Map(Object.entries(row.texts)),
    };
    this.#held.set(row.job.id, held);
    this.#dirty.add(held);
    this.changed = true;
    this.woken.add(row.job.submission.queue);
    const { requestId } = row.job.submission;
    // A repeat within this batch has to find it.
    if (requestId !== null) this.flush();
  }

  write(before: Row, after: Row): void {
    const held = this.#hold(after.job.id);
    if (held === undefined) throw new Error(`job ${after.job.id} is written but not stored`);
    held.entries.push(...after.chain.entries.slice(before.chain.entries.length));
    for (const [digest, text] of Object.entries(after.texts)) {
      if (!Object.hasOwn(before.texts, digest)) held.texts.set(digest, text);
    }
    held.row = { ...after, chain: { ...after.chain, entries: [] }, texts: {} };
    held.dirty = true;
    this.#dirty.add(held);
    this.changed = true;
    this.woken.add(after.job.submission.queue);
  }

  /** Brings the database up to what was decided: jobs that leave their lane first, then the new ones. */
  flush(): void {
    if (this.#dirty.size === 0) return;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const held of dirty) if (held.stored !== 'new') this.#store(held);
    for (const held of dirty) {
      if (held.stored !== 'new') continue;
      this.#insert(held);
    }
    for (const held of dirty) held.dirty = false;
  }

  #store(held: Held): void {
    const { job } = held.row;
    if (held.stored === 'settled') {
      const { reportDigest, redrivenTo, dismissed } = held.row;
      const noted = dismissed === null ? null : JSON.stringify(dismissed);
      this.#storeTexts(held);
      this.#sql.amendSettled.run(reportDigest, redrivenTo, noted, job.id);
    } else if (stateIsTerminal(job.state)) {
      this.#settle(held);
    } else {
      this.#closeEntries(held);
      this.#storeTexts(held);
      this.#sql.updateLive.run(...liveValues(held.row, held.ledger, held.pages), job.state, job.id);
    }
  }

  #insert(held: Held): void {
    const { job } = held.row;
    const { submission } = job;
    const { queue, orderingKey, requestId, priority, deadline } = submission;
    const { route } = this.#routeOf(submission);
    const root = this.#lineageRoot(submission);
    const { id } = job;
    const asked = submissionText(submission);
    this.#sql.insertSubmission.run(id, route, orderingKey, asked, held.payload ?? '', requestId, root);
    this.#closeEntries(held);
    this.#storeTexts(held);
    this.#catalogue.remember(id, submission);
    if (stateIsTerminal(job.state)) {
      this.#insertSettled(held, route);
      return;
    }
    const lane = laneOf(queue, orderingKey);
    const values = liveValues(held.row, held.ledger, held.pages);
    const pending = job.state === STATE.PENDING ? 1 : 0;
    this.#sql.insertLive.run(lane, lane, id, route, lane, priority, deadline, pending, ...values);
    held.stored = 'live';
    this.#countUnresolved(submission, 1);
  }

  /** The one place where a job becomes terminal: its live row goes and its settled row comes, in one transaction. */
  #settle(held: Held): void {
    const { job } = held.row;
    const { submission } = job;
    const { route } = this.#routeOf(submission);
    const lane = laneOf(submission.queue, submission.orderingKey);
    this.#closeEntries(held);
    this.#storeTexts(held);
    this.#sql.deleteLive.run(job.id);
    this.#insertSettled(held, route);
    if (lane !== null) this.#sql.promoteLane.run(lane);
    this.#countUnresolved(submission, -1);
  }

  #insertSettled(held: Held, route: number): void {
    const { queue, orderingKey } = held.row.job.submission;
    const place = { route, lane: laneOf(queue, orderingKey) };
    this.#sql.insertSettled.run(...settledValues(held.row, place, held.ledger, held.pages));
    held.stored = 'settled';
  }

  /** Appends closed entries to the row's ledger; past its bound they move to a page, and the past is never rewritten. */
  #closeEntries(held: Held): void {
    if (held.entries.length === 0) return;
    const added = packLedger(held.entries);
    held.entries = [];
    if (held.ledger.byteLength + added.byteLength <= limits.ledgerInlineMax) {
      held.ledger = Buffer.concat([held.ledger, added]);
      return;
    }
    this.#sql.insertPage.run(held.row.job.id, held.pages, Buffer.concat([held.ledger, added]));
    held.pages += 1;
    held.ledger = new Uint8Array();
  }

  #storeTexts(held: Held): void {
    for (const [digest, text] of held.texts) this.#sql.insertText.run(held.row.job.id, digest, text);
    held.texts.clear();
  }

  #routeOf(submission: Submission): Route {
    const { queue, kind, revision } = submission;
    const internal = submission.internal !== null;
    const known = this.#catalogue.route(queue, kind, revision, internal);
    if (known !== undefined) return known;
    this.#catalogue.routes(this.#sql);
    const found = this.#catalogue.route(queue, kind, revision, internal);
    if (found !== undefined) return found;
    const inserted = this.#sql.insertRoute.get(queue, kind, revision, internal ? 1 : 0);
    if (inserted === undefined) throw new Error('a route was inserted without an answer');
    const route = { route: new Columns(inserted).number('route'), queue, kind, revision, internal };
    this.#catalogue.add(route);
    return route;
  }

  /** The first job of the lineage, so that marks are kept for as long as any job of it is stored. */
  #lineageRoot(submission: Submission): number | null {
    const fromId = submission.inherited?.fromId;
    if (fromId === undefined) return null;
    const row = this.#sql.lineageRoot.get(fromId);
    return row === undefined ? fromId : (new Columns(row).numberOrNull('lineage_root') ?? fromId);
  }

  #countUnresolved(submission: Submission, by: 1 | -1): void {
    if (submission.internal !== null) return;
    const queue = this.queue(submission.queue);
    if (queue?.maxUnresolved != null) this.#sql.addUnresolved.run(by, submission.queue);
  }

  takeId(): number {
    if (this.#nextId >= limits.idMax) throw new NumbersExhaustedError('ids');
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  peekToken(): number {
    return this.#nextToken;
  }

  takeToken(): number {
    if (this.#nextToken >= limits.tokenMax) throw new NumbersExhaustedError('tokens');
    this.#nextToken += 1;
    return this.#nextToken - 1;
  }

  key(key: string): KeyRow | undefined {
    const row = this.#sql.key.get(key);
    return row === undefined ? undefined : keyRow(row);
  }

  setKey(row: KeyRow): void {
    this.changed = true;
    this.#sql.setKey.run(row.key, row.descriptor, row.jobId, row.keepUntil);
  }

  requestedJob(requestId: string): number | undefined {
    const row = this.#sql.requested.get(requestId);
    return row === undefined ? undefined : new Columns(row).number('id');
  }

  effect(place: EffectPlace): EffectRow | undefined {
    return effectAt(this.#sql, place);
  }

  setEffect(row: EffectRow): void {
    const { lineage, occurrence, key, type, done, descriptor, result, jobId, token } = row;
    this.changed = true;
    this.#sql.setEffect.run(lineage, occurrence, key, type, done ? 1 : 0, descriptor, result, jobId, token);
  }

  deleteEffect(place: EffectPlace): void {
    this.changed = true;
    this.#sql.deleteEffect.run(place.lineage, place.occurrence, place.key);
  }

  testimony(id: number): readonly Testimony[] {
    return testimonyOf(this.#sql, id);
  }

  addTestimony(testimony: Testimony): void {
    const { id, tick, worker, token, outcome, digest, report, chained } = testimony;
    this.changed = true;
    this.#sql.insertTestimony.run(id, id, tick, worker, token, outcome, digest, report, chained ? 1 : 0);
  }

  queue(queue: string): QueueRow | undefined {
    if (!this.#queues.has(queue)) {
      const row = this.#sql.queue.get(queue);
      this.#queues.set(queue, row === undefined ? undefined : queueRow(row));
    }
    return this.#queues.get(queue);
  }

  setQueue(row: QueueRow): void {
    this.flush();
    const { queue, maxUnresolved, paused } = row;
    const counted = maxUnresolved === null ? undefined : this.#sql.countUnresolved.get(queue);
    const unresolved = counted === undefined ? 0 : new Columns(counted).number('unresolved');
    const noted = paused === null ? null : JSON.stringify(paused);
    this.#sql.setQueue.run(queue, maxUnresolved, unresolved, noted);
    this.#queues.set(queue, row);
    this.changed = true;
    this.woken.add(queue);
  }

  definitions(kind: string, revision: number): readonly DefinitionRecord[] {
    return this.#sql.definitions.all(kind, revision).map((row) => ({
      kind,
      revision,
      schemaDigest: new Columns(row).textOrNull('schema_digest'),
      normalisation: new Columns(row).text('normalisation'),
    }));
  }

  addDefinition({ kind, revision, schemaDigest, normalisation }: DefinitionRecord): void {
    this.changed = true;
    this.#sql.insertDefinition.run(kind, revision, schemaDigest, normalisation);
  }

  seeWorker(worker: string, known: readonly { readonly kind: string; readonly revision: number }[]): void {
    const definitions = knownText(known);
    const row = this.#sql.worker.get(worker);
    const columns = row === undefined ? null : new Columns(row);
    const recent = columns !== null && this.now - columns.number('seen_at') < SEEN_WITHIN_MS;
    if (recent && columns.text('definitions') === definitions) return;
    this.changed = true;
    this.#sql.setWorker.run(worker, this.now, definitions);
  }

  keepWorkerAlive(worker: string): void {
    if (this.#sql.seeWorker.run(this.now, worker, this.now - SEEN_WITHIN_MS).changes > 0) this.changed = true;
  }

  addAct(
    act: Act['act'],
    by: { readonly actor: string; readonly reason: string | null },
    detail: string,
  ): void {
    this.changed = true;
    this.#sql.insertAct.run(act, this.now, by.actor, by.reason, detail);
  }

  seal(movedTo: string): void {
    this.changed = true;
    this.#sql.seal.run(movedTo);
  }

  isHead(job: Job): boolean {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null || this.#picked.has(job.id)) return true;
    this.flush();
    const row = this.#sql.laneHead.get(lane);
    return row !== undefined && new Columns(row).number('id') === job.id;
  }

  picker(request: Pick<ClaimRequest, 'definitions' | 'queues' | 'max'>): Picker {
    this.flush();
    const pick = routePicker(this.#sql, this.#catalogue, request, this.now);
    if (pick.ripened) this.changed = true;
    return {
      next: (token) => {
        const id = pick.next(token);
        if (id === null) return null;
        this.#picked.add(id);
        return this.row(id) ?? null;
      },
    };
  }

  heldBy(requestId: string): readonly Row[] {
    this.flush();
    return this.#sql.heldBy.all(requestId).flatMap((row) => this.row(new Columns(row).number('id')) ?? []);
  }

  nextOverdue(): Row | null {
    this.flush();
    const row = this.#sql.nextOverdue.get(this.now);
    return row === undefined ? null : (this.row(new Columns(row).number('id')) ?? null);
  }

  unresolved(queue: string): number {
    if (this.queue(queue)?.maxUnresolved == null) return 0;
    this.flush();
    const row = this.#sql.queue.get(queue);
    return row === undefined ? 0 : queueRow(row).unresolved;
  }

  /** Rows as this transaction sees them, for views and retention. */
  source(): ViewSource {
    return {
      row: (id) => this.row(id),
      payload: (id) => this.payload(id),
      key: (key) => this.key(key),
      testimony: (id) => this.testimony(id),
      text: (row, digest) => {
        const text = this.#sql.text.get(row.job.id, digest);
        return text === undefined ? null : new Columns(text).text('text');
      },
    };
  }

  /** Rows that were removed are not to be found in this transaction either. */
  forget(ids: readonly number[]): void {
    for (const id of ids) this.#held.delete(id);
  }

  /** Ids of all live rows, in pages: what a corrected clock has to look at. */
  *liveIds(): Generator<number> {
    for (let after = 0; ; ) {
      const ids = this.#sql.liveIds.all(after).map((row) => new Columns(row).number('id'));
      yield* ids;
      const last = ids.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  /** SCHEDULED jobs that were due only by a clock that ran ahead wait again. */
  unripen(): void {
    this.flush();
    if (this.#sql.unripen.run(this.now).changes > 0) this.changed = true;
  }
}
