/** Reads of the SQLite store: each sees one committed moment, waits for no writer and keeps none waiting. */
import {
  type Context,
  type Job,
  laneOf,
  lapse,
  limits,
  STATE,
  type State,
  stateIsTerminal,
  stateIsValid,
} from '../../core/index.ts';
import { unpackLedger } from '../../evidence/index.ts';
import { NO_CONTEXT } from '../engine/engine.ts';
import { contradictionsOf, isOver, matches, needsYouOf, type ViewSource, viewOf } from '../engine/views.ts';
import { explainJob } from '../explain.ts';
import { readDefinitions, readQuery, readWhole } from '../input.ts';
import type {
  Act,
  ClaimRequest,
  Counts,
  Explanation,
  FindQuery,
  Found,
  JobEvidence,
  JobView,
  LaneView,
  QueueView,
  WorkerView,
} from '../store.ts';
import { Catalogue } from './catalogue.ts';
import type { SqlConnection, SqlRow } from './driver.ts';
import { permittedRoutes } from './picker.ts';
import { Columns, type Loaded } from './rows.ts';
import { knownText, SEEN_WITHIN_MS } from './session.ts';
import { keyRow, loadRow, payloadOf, queueRow, testimonyOf } from './source.ts';
import { prepareReads, type ReadStatements } from './statements.ts';

/** Counters as one read saw them. */
export interface ReadCounter {
  readonly lastTick: number;
  readonly sealedTo: string | null;
}

/** Jobs that can need somebody; whether one does, the view tells. What succeeded does only with testimony. */
const MAY_NEED_SOMEBODY = `
  select id from live where state = 8 or cause = 'upgrade_refused'
  union select id from settled where state <> 4 and (outcome_unknown = 1 or (state in (6, 7) and runs > 0))
  union select id from testimony`;

/**
 * Ids above a parameter, in order, that a query can match; null when it can match none. One ordered branch per state, so
 * that a listing of a few failures does not pass over millions of successes.
 */
function candidates(query: FindQuery): string | null {
  if (query.needsYou === true)
    return `select id from (${MAY_NEED_SOMEBODY}) where id > ? order by id limit 1000`;
  const states = query.states ?? null;
  if (states === null) return 'select id from submission where id > ? order by id limit 1000';
  const known = [...new Set(states)].filter((state) => Number.isInteger(state) && stateIsValid(state));
  const branches = known.map((state) => {
    if (!stateIsTerminal(state)) return `select id from live where state = ${state}`;
    // The plus keeps the planner from sorting an index that is ordered otherwise: most rows match, in the table's order.
    if (state === STATE.SUCCEEDED) return `select id from settled where +state = ${state}`;
    // Said twice, since the planner must see that the partial index holds every row asked for.
    return `select id from settled indexed by settled_failed where state = ${state} and state <> 4`;
  });
  if (branches.length === 0) return null;
  return `select id from (${branches.join(' union all ')}) where id > ? order by id limit 1000`;
}

/** Everything that is read and not written. */
export class Reads {
  readonly #connection: SqlConnection;
  readonly #sql: ReadStatements;
  readonly #catalogue: Catalogue = new Catalogue();
  readonly source: ViewSource;

  constructor(connection: SqlConnection) {
    this.#connection = connection;
    this.#sql = prepareReads(connection);
    this.source = {
      row: (id) => loadRow(this.#sql, this.#catalogue, id)?.row,
      payload: (id) => payloadOf(this.#sql, id),
      key: (key) => this.#keyRow(key),
      testimony: (id) => testimonyOf(this.#sql, id),
      text: (row, digest) => this.#text(row.job.id, digest),
    };
  }

  /** Runs `work` in one read transaction, with the counters of its moment. */
  reading<Value>(work: (counter: ReadCounter) => Value): Value {
    this.#connection.exec('begin');
    try {
      const columns = new Columns(this.#sql.counter.get() ?? {});
      this.#catalogue.enter(columns.number('epoch'));
      return work({ lastTick: columns.number('last_tick'), sealedTo: columns.textOrNull('sealed_to') });
    } finally {
      this.#connection.exec('commit');
    }
  }

  close(): void {
    this.#connection.close();
  }

  /** Whether a claim would find anything at `now`: an idle worker looks before it asks to write. */
  hasWork(request: ClaimRequest, now: number): boolean {
    if (this.#sql.nextOverdue.get(now) !== undefined) return true;
    if (this.#sql.dueWaiting.get(now) !== undefined) return true;
    return permittedRoutes(this.#sql, this.#catalogue, request).some(
      ({ route }) => this.#sql.ready.get(route) !== undefined,
    );
  }

  isOverdue(now: number): boolean {
    return this.#sql.nextOverdue.get(now) !== undefined;
  }

  /** Whether a worker's sign of life is fresh enough and says the same. */
  isSeen(worker: string, definitions: ClaimRequest['definitions'], now: number): boolean {
    const row = this.#sql.worker.get(worker);
    if (row === undefined) return false;
    const columns = new Columns(row);
    return (
      now - columns.number('seen_at') < SEEN_WITHIN_MS &&
      columns.text('definitions') === knownText(definitions)
    );
  }

  isClaimed(requestId: string): boolean {
    return this.#sql.claimed.get(requestId) !== undefined;
  }

  get(id: number): JobView | null {
    const row = this.source.row(id);
    return row === undefined ? null : viewOf(this.source, row);
  }

  getByKey(key: string, now: number): { id: number; view: JobView | null } | null {
    const held = this.#keyRow(key);
    const view = held === undefined ? null : this.get(held.jobId);
    return held === undefined || isOver(held, view, now) ? null : { id: held.jobId, view };
  }

  #keyRow(key: string): ReturnType<typeof keyRow> | undefined {
    const row = this.#sql.key.get(key);
    return row === undefined ? undefined : keyRow(row);
  }

  #text(id: number, digest: string): string | null {
    const row = this.#sql.text.get(id, digest);
    return row === undefined ? null : new Columns(row).text('text');
  }

  /** Merges the live and the settled rows in the order of their ids, a page of ids at a time. */
  find(given: FindQuery): Found {
    const query = readQuery(given);
    const limit = query.limit ?? limits.findPageDefault;
    const jobs: JobView[] = [];
    const text = candidates(query);
    if (text === null) return { jobs, nextAfterId: null };
    const ids = this.#connection.prepare(text);
    let after = query.afterId ?? 0;
    for (;;) {
      const page = ids.all(after).map((row) => new Columns(row).number('id'));
      for (const id of page) {
        after = id;
        const row = this.source.row(id);
        if (row === undefined || !matches(this.source, row, query)) continue;
        if (jobs.length === limit) return { jobs, nextAfterId: jobs.at(-1)?.job.id ?? null };
        jobs.push(viewOf(this.source, row));
      }
      if (page.length === 0) return { jobs, nextAfterId: null };
    }
  }

  counts(now: number): Counts {
    const states: Record<number, number> = {};
    for (const row of this.#all('select state, count(*) as jobs from live group by state')) add(states, row);
    for (const row of this.#all('select state, count(*) as jobs from settled group by state'))
      add(states, row);
    let needsYou = 0;
    let contradictions = 0;
    for (const sql of this.#all(MAY_NEED_SOMEBODY)) {
      const row = this.source.row(new Columns(sql).number('id'));
      if (row === undefined) continue;
      if (needsYouOf(this.source, row) !== null) needsYou += 1;
      contradictions += contradictionsOf(this.source, row);
    }
    return { states, needsYou, stranded: this.#stranded(now), contradictions };
  }

  #stranded(now: number): number {
    const alive = this.workers(now).filter((worker) => worker.alive);
    let stranded = 0;
    for (const sql of this.#all('select route, count(*) as jobs from live group by route')) {
      const columns = new Columns(sql);
      const route = this.#catalogue.routes(this.#sql).find((one) => one.route === columns.number('route'));
      const taken = alive.some((worker) =>
        worker.definitions.some((one) => one.kind === route?.kind && one.revision >= route.revision),
      );
      if (!taken) stranded += columns.number('jobs');
    }
    return stranded;
  }

  queues(): readonly QueueView[] {
    const found = new Map<string, { states: Record<number, number>; unresolved: number }>();
    const view = (queue: string): { states: Record<number, number>; unresolved: number } => {
      const one = found.get(queue) ?? { states: {}, unresolved: 0 };
      found.set(queue, one);
      return one;
    };
    const settings = new Map(
      this.#all('select * from queue').map((row) => [queueRow(row).queue, queueRow(row)]),
    );
    for (const queue of settings.keys()) view(queue);
    for (const table of ['live', 'settled']) {
      const text = `select queue, internal, state, count(*) as jobs from ${table} join route using (route) group by route, state`;
      for (const row of this.#all(text)) {
        const columns = new Columns(row);
        const one = view(columns.text('queue'));
        add(one.states, row);
        if (table === 'live' && !columns.flag('internal')) one.unresolved += columns.number('jobs');
      }
    }
    return [...found]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([queue, { states, unresolved }]) => {
        const { maxUnresolved = null, paused = null } = settings.get(queue) ?? {};
        return { queue, maxUnresolved, paused, states, unresolved };
      });
  }

  lanes(limit: number): readonly LaneView[] {
    const bound = readWhole(limit, 'limit', 1, limits.findPageMax);
    const text = `
      select min(id) as head, count(*) as jobs from live where lane is not null
      group by lane order by jobs desc, head limit ?`;
    return this.#connection
      .prepare(text)
      .all(bound)
      .flatMap((row) => {
        const columns = new Columns(row);
        const head = this.source.row(columns.number('head'))?.job;
        if (head === undefined) return [];
        const { queue, orderingKey } = head.submission;
        const unresolved = columns.number('jobs');
        return [
          {
            queue,
            orderingKey: orderingKey ?? '',
            headId: head.id,
            headState: head.state as State,
            unresolved,
          },
        ];
      });
  }

  workers(now: number): readonly WorkerView[] {
    const text = `
      select worker, seen_at, definitions,
        (select count(*) from live where live.worker = worker.worker) as leases
      from worker order by worker`;
    return this.#all(text).map((row) => {
      const columns = new Columns(row);
      const seenAt = columns.number('seen_at');
      return {
        worker: columns.text('worker'),
        seenAt,
        alive: now - seenAt <= limits.workerAliveMs,
        definitions: JSON.parse(columns.text('definitions')) as WorkerView['definitions'],
        leases: columns.number('leases'),
      };
    });
  }

  evidence(id: number): JobEvidence | null {
    const loaded = loadRow(this.#sql, this.#catalogue, id);
    if (loaded === undefined) return null;
    const { job, chain } = loaded.row;
    return {
      job,
      payload: this.source.payload(id),
      chain: { ...chain, entries: this.entries(id, loaded) },
      texts: this.texts(id),
      testimony: this.source.testimony(id),
    };
  }

  /** All closed entries of a job: its pages, then what is in its row. */
  entries(id: number, loaded: Loaded): readonly Uint8Array[] {
    const pages =
      loaded.pages === 0 ? [] : this.#sql.pages.all(id).map((row) => new Columns(row).bytes('data'));
    return [...pages, loaded.ledger].flatMap((bytes) => {
      const unpacked = unpackLedger(bytes);
      if (!unpacked.ok)
        throw new Error(`the ledger of job ${id} is damaged: ${unpacked.field} ${unpacked.problem}`);
      return unpacked.entries;
    });
  }

  texts(id: number): Readonly<Record<string, string>> {
    const rows = this.#sql.texts.all(id).map((row) => new Columns(row));
    return Object.fromEntries(rows.map((columns) => [columns.text('digest'), columns.text('text')]));
  }

  load(id: number): Loaded | undefined {
    return loadRow(this.#sql, this.#catalogue, id);
  }

  explain(id: number, definitions: ClaimRequest['definitions'], now: number): Explanation | null {
    const job = this.source.row(id)?.job;
    if (job === undefined) return null;
    const { queue, kind } = job.submission;
    const settings = this.#sql.queue.get(queue);
    const pausedBy = settings === undefined ? null : (queueRow(settings).paused?.actor ?? null);
    const head = this.#headNow(job, now);
    const context: Context = {
      ...NO_CONTEXT,
      laneHead: head === null || head.id === id,
      queuePaused: pausedBy !== null,
      claimer:
        readDefinitions(definitions, 'definitions').find((definition) => definition.kind === kind) ?? null,
    };
    return explainJob({ job, now, context, headId: head?.id ?? null, pausedBy });
  }

  /** The head of the job's lane as it will be once what is overdue has been lapsed; nothing is written here. */
  #headNow(job: Job, now: number): Job | null {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null) return null;
    for (const sql of this.#connection
      .prepare('select id from live where lane = ? order by id')
      .iterate(lane)) {
      const other = this.source.row(new Columns(sql).number('id'))?.job;
      if (other !== undefined && !stateIsTerminal(lapse(other, now).job.state)) return other;
    }
    return null;
  }

  acts(): readonly Act[] {
    return this.#all('select * from act order by number').map((row) => {
      const columns = new Columns(row);
      return {
        act: columns.text('act') as Act['act'],
        tick: columns.number('tick'),
        actor: columns.text('actor'),
        reason: columns.textOrNull('reason'),
        detail: columns.text('detail'),
      };
    });
  }

  all(sql: string): readonly SqlRow[] {
    return this.#all(sql);
  }

  #all(sql: string): readonly SqlRow[] {
    return this.#connection.prepare(sql).all();
  }
}

function add(states: Record<number, number>, row: SqlRow): void {
  const columns = new Columns(row);
  const state = columns.number('state');
  states[state] = (states[state] ?? 0) + columns.number('jobs');
}
