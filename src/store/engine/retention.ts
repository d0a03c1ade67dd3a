/** What retention may take, the same for every backend: only what has ended, and nothing a person must still see. */
import { limits, STATE, type State } from '../../core/index.ts';
import { readBy, readFlag, readOptions, readWhole, type Told } from '../input.ts';
import type { Row } from '../session.ts';
import type { PruneRequest } from '../store.ts';
import { compensationOf, needsYouOf, type ViewSource } from './views.ts';

/** A prune request within its bounds. */
export interface Pruning {
  readonly actor: string;
  readonly reason: Told | null;
  readonly limit: number;
  readonly undismissed: boolean;
  /** Age since its end at which a job goes, by state; null keeps it for ever. */
  readonly ages: ReadonlyMap<State, number | null>;
}

export function readPruning(given: PruneRequest): Pruning {
  const request = readOptions(given, 'request', [
    'by',
    'succeededAfterMs',
    'cancelledAfterMs',
    'failedAfterMs',
    'undismissed',
    'limit',
  ]);
  return {
    ...readBy(request.by),
    limit: readWhole(request.limit ?? limits.prunePageMax, 'limit', 1, limits.prunePageMax),
    undismissed: readFlag(request.undismissed ?? false, 'undismissed'),
    ages: readAges(request),
  };
}

function readAges(request: PruneRequest): Pruning['ages'] {
  const age = (value: number | null | undefined, field: string, fallback: number | null): number | null => {
    if (value === undefined) return fallback;
    return value === null ? null : readWhole(value, field, 0, limits.tickMax);
  };
  const failed = age(request.failedAfterMs, 'failedAfterMs', limits.keepSucceededMsDefault);
  return new Map<State, number | null>([
    [STATE.SUCCEEDED, age(request.succeededAfterMs, 'succeededAfterMs', limits.keepSucceededMsDefault)],
    [STATE.CANCELLED, age(request.cancelledAfterMs, 'cancelledAfterMs', limits.keepCancelledMsDefault)],
    [STATE.PERMANENT_FAILURE, failed],
    [STATE.DEAD_LETTERED, failed],
  ]);
}

/** Whether a job may go now. Internal jobs are evidence of their parent's decision and go when the parent is gone. */
export function isPrunable(source: ViewSource, row: Row, pruning: Pruning, now: number): boolean {
  const { state, endedAt, submission } = row.job;
  const ageMs = pruning.ages.get(state) ?? null;
  if (endedAt === null || ageMs === null || now - endedAt < ageMs) return false;
  if (submission.internal !== null) return source.row(submission.internal.parentId) === undefined;
  const failed = state === STATE.PERMANENT_FAILURE || state === STATE.DEAD_LETTERED;
  if (failed && row.dismissed === null && !pruning.undismissed) return false;
  if (needsYouOf(source, row) !== null && !pruning.undismissed) return false;
  // What still has to be undone is not forgotten, whoever asks.
  const compensation = compensationOf(source, row.job);
  return compensation === null || compensation.job.endedAt !== null;
}
