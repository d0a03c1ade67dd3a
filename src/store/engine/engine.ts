/** Where decisions become rows, the same for every backend: a decided job, its facts and what follows commit together. */
import {
  type Ask,
  type Command,
  type Context,
  consequencesOf,
  type Decision,
  decide,
  type Fact,
  initialJob,
  internalKey,
  internalPayload,
  internalSubmission,
  type Job,
  lapse,
  limits,
  type Submission,
} from '../../core/index.ts';
import { appendFacts, newChain, sha256Hex } from '../../evidence/index.ts';
import type { Told } from '../input.ts';
import type { Reported, Row, Session } from '../session.ts';
import { textDigestsOf } from './texts.ts';

/** Facts a store asserts when nothing of them applies to a command. */
export const NO_CONTEXT: Context = { laneHead: false, queuePaused: false, claimer: null, effect: null };

/** The deciding side of one transaction. */
export class Engine {
  readonly session: Session;
  readonly now: number;

  constructor(session: Session) {
    this.session = session;
    this.now = session.now;
  }

  /** Decides a command on a row and writes what follows. */
  decide(row: Row, command: Command, context: Context, told: readonly Told[] = []): Decision {
    const decision = decide(row.job, command, context, this.now);
    if (decision.job !== row.job) this.persist(row, decision.job, decision.facts, decision.asks, told);
    return decision;
  }

  /** Lapses a row if it is overdue; the row as it is afterwards. */
  lapseRow(row: Row): Row {
    const { job, facts } = lapse(row.job, this.now);
    if (facts.length === 0) return row;
    return this.persist(row, job, facts, consequencesOf(row.job, job, this.now), []);
  }

  /** Lapses what is overdue, up to `limit` jobs. */
  lapseOverdue(limit: number): number[] {
    const ids: number[] = [];
    for (let row = this.session.nextOverdue(); row !== null && ids.length < limit; ) {
      // What was selected as overdue must lapse: a disagreement would select it again, for ever.
      if (this.lapseRow(row) === row) throw new Error(`job ${row.job.id} was selected as overdue and is not`);
      ids.push(row.job.id);
      row = this.session.nextOverdue();
    }
    return ids;
  }

  /** Writes a decided job with its facts and everything that has to happen in the same commit. */
  persist(before: Row, job: Job, facts: readonly Fact[], asks: readonly Ask[], told: readonly Told[]): Row {
    const row: Row = {
      ...before,
      job,
      chain: facts.length === 0 ? before.chain : appendFacts(before.chain, facts),
      texts: withTexts(before.texts, told, facts),
      claimRequestId: job.lease === null ? null : before.claimRequestId,
    };
    this.session.write(before, row);
    if (before.job.endedAt === null && job.endedAt !== null) this.#keepKey(job, job.endedAt);
    for (const ask of asks) this.#enact(row, ask);
    return row;
  }

  /** Replaces columns of a row that no decision is about. */
  amend(row: Row, columns: Partial<Omit<Row, 'job' | 'chain'>>): Row {
    const amended = { ...row, ...columns };
    this.session.write(row, amended);
    return amended;
  }

  /** Stores a new job under the next id. */
  admit(submission: Submission, payload: string): Row {
    const row: Row = {
      job: initialJob(this.session.takeId(), submission),
      chain: newChain(submission),
      texts: {},
      claimRequestId: null,
      reportDigest: null,
      redrivenTo: null,
      dismissed: null,
    };
    const { idempotencyKey: key, descriptor } = submission;
    this.session.insert(row, payload);
    if (key !== null) this.session.setKey({ key, descriptor, jobId: row.job.id, keepUntil: null });
    return row;
  }

  /** The row of a job that is known to be stored. */
  rowOf(id: number): Row {
    const row = this.session.row(id);
    if (row === undefined) throw new Error(`job ${id} vanished inside a transaction`);
    return row;
  }

  /** Keeps a report that came too late; the same one again, and more than the bound, add nothing. */
  testify(reported: Reported, told: Told, chained: boolean): void {
    const { id, token, worker, outcome } = reported;
    const kept = this.session.testimony(id);
    const known = kept.some(
      (one) => one.token === token && one.outcome === outcome && one.digest === told.digest,
    );
    const definite = outcome === 'succeeded' || outcome === 'permanent';
    const bound = definite ? limits.testimonyPerJobMax : limits.testimonyIndefiniteMax;
    if (known || kept.length >= bound) return;
    const { digest, text: report } = told;
    this.session.addTestimony({ id, tick: this.now, worker, token, outcome, digest, report, chained });
  }

  isPaused(queue: string): boolean {
    return (this.session.queue(queue)?.paused ?? null) !== null;
  }

  /** What a decision to retry says of open steps becomes their mark: done with its result, or never begun. */
  markSteps(job: Job, steps: readonly { key: string; tookPlace: boolean; text: string | null }[]): void {
    const { lineage } = job.submission;
    for (const { key, tookPlace, text } of steps) {
      const place = { lineage, occurrence: job.occurrence, key };
      const mark = this.session.effect(place);
      if (mark === undefined) continue;
      if (tookPlace) this.session.setEffect({ ...mark, done: true, result: text });
      else this.session.deleteEffect(place);
    }
  }

  #keepKey(job: Job, endedAt: number): void {
    const key = job.submission.idempotencyKey;
    const row = key === null ? undefined : this.session.key(key);
    if (row?.jobId === job.id)
      this.session.setKey({
        ...row,
        keepUntil: Math.min(endedAt + this.session.keepKeysForMs, limits.tickMax),
      });
  }

  #enact(parent: Row, ask: Ask): void {
    const purpose = ask.ask === 'enqueue_compensate' ? 'compensate' : 'reconcile';
    const link = { purpose, parentId: parent.job.id, parentToken: ask.token } as const;
    const existing = this.session.key(internalKey(link));
    if (ask.ask === 'cancel_reconcile') {
      const internal = existing === undefined ? undefined : this.session.row(existing.jobId);
      if (internal === undefined) return;
      const command = { type: 'cancel', actor: 'custody', reason: null, version: null } as const;
      this.decide(internal, command, NO_CONTEXT);
      return;
    }
    if (existing !== undefined) return;
    const context = { now: this.now, lineage: this.session.randomId(), sha256: sha256Hex };
    this.admit(internalSubmission(parent.job, link, ask.startAt, context), internalPayload(link));
  }
}

/** Texts whose digest the facts state; a report that changed nothing leaves none behind. */
function withTexts(texts: Row['texts'], told: readonly Told[], facts: readonly Fact[]): Row['texts'] {
  const stated = told.filter(({ digest }) => facts.some((fact) => textDigestsOf(fact).includes(digest)));
  if (stated.length === 0) return texts;
  return { ...texts, ...Object.fromEntries(stated.map(({ digest, text }) => [digest, text])) };
}
