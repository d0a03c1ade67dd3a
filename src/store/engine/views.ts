/** Jobs as they are shown, the same for every backend: what a person must see is derived in one place. */
import {
  compensationIsRequired,
  everRan,
  internalKey,
  type Job,
  needsYou,
  STATE,
  stateIsTerminal,
} from '../../core/index.ts';
import type { KeyRow, Row } from '../session.ts';
import type { FindQuery, JobView, NeedsYou, Testimony } from '../store.ts';

/** What a view reads; all of it at one moment. */
export interface ViewSource {
  row(id: number): Row | undefined;
  payload(id: number): string;
  key(key: string): KeyRow | undefined;
  testimony(id: number): readonly Testimony[];
  text(row: Row, digest: string): string | null;
}

export function viewOf(source: ViewSource, row: Row): JobView {
  const { job, redrivenTo, dismissed, reportDigest } = row;
  return {
    job,
    payload: source.payload(job.id),
    report: reportDigest === null ? null : source.text(row, reportDigest),
    redrivenTo,
    dismissed,
    testimony: source.testimony(job.id),
    contradictions: contradictionsOf(source, row),
    needsYou: needsYouOf(source, row),
  };
}

/** The compensation of a job's last attempt, if one was ever enqueued. */
export function compensationOf(source: Pick<ViewSource, 'row' | 'key'>, job: Job): Row | null {
  const key = internalKey({ purpose: 'compensate', parentId: job.id, parentToken: job.token });
  const id = everRan(job) ? source.key(key)?.jobId : undefined;
  return id === undefined ? null : (source.row(id) ?? null);
}

/** Definite reports that say otherwise than what the job ended as. */
export function contradictionsOf(source: ViewSource, row: Row): number {
  if (!stateIsTerminal(row.job.state)) return 0;
  const succeeded = row.job.state === STATE.SUCCEEDED;
  return source
    .testimony(row.job.id)
    .filter(
      ({ outcome }) => (outcome === 'succeeded' && !succeeded) || (outcome === 'permanent' && succeeded),
    ).length;
}

export function needsYouOf(source: ViewSource, row: Row): NeedsYou | null {
  if (row.dismissed !== null) return null;
  const own = needsYou(row.job);
  if (own !== null) return own;
  if (contradictionsOf(source, row) > 0) return 'contradiction';
  const { internal } = row.job.submission;
  if (internal !== null || !compensationIsRequired(everRan(row.job), row.job.state)) return null;
  const compensation = compensationOf(source, row.job);
  // It is enqueued in the commit that makes it necessary; where it is missing all the same, a person has to know.
  if (compensation === null) return 'compensation_required';
  if (!stateIsTerminal(compensation.job.state)) return null;
  return compensation.job.state === STATE.SUCCEEDED ? null : 'compensation_failed';
}

/** Whether a job is one of those a query asks for. */
export function matches(source: ViewSource, row: Row, query: FindQuery): boolean {
  const { state, submission } = row.job;
  return (
    (query.states?.includes(state) ?? true) &&
    (query.kinds?.includes(submission.kind) ?? true) &&
    (query.queues?.includes(submission.queue) ?? true) &&
    (query.orderingKey == null || query.orderingKey === submission.orderingKey) &&
    (query.lineage == null || query.lineage === submission.lineage) &&
    (query.internal === true || submission.internal === null) &&
    (query.needsYou !== true || needsYouOf(source, row) !== null)
  );
}

/** Whether a key's time is over: its job is gone, and so is what it was kept for. */
export function isOver(key: KeyRow, view: JobView | null, now: number): boolean {
  return view === null && key.keepUntil !== null && now >= key.keepUntil;
}
