/** Reads a job of unknown origin: a state that no job can stand in is refused by field, whatever made it. */
import { type Answered, CAUSES, type Job, type Lease, OUTCOMES } from '../core/job.ts';
import { limits } from '../core/limits.ts';
import { STATE, type State, stateIsTerminal } from '../core/states.ts';
import { STORED_STATES } from './codec.ts';
import { type PlainReader, type Read, type Relation, readRecord } from './plain-reader.ts';
import { openStepFields, stepKeysDiffer, submissionFields, submissionRelations } from './read-submission.ts';

const STATES: readonly State[] = STORED_STATES.filter((state) => state !== null);

/**
 * Reads plain JSON as a job, or names the first field that cannot be one and the rule it breaks. It checks every bound
 * and what must hold between fields; whether the job's history leads there only replay can tell. Accessors are refused
 * and never run. `path` begins the names of fields.
 *
 * @example
 * ```ts
 * const read = readJob(line.job, 'snapshot.jobs[3]');
 * if (!read.ok) console.error(read.problem.field, read.problem.problem);
 * ```
 */
export function readJob(value: unknown, path: string = 'job'): Read<Job> {
  return readRecord(value, path, jobFields, jobRelations);
}

export function jobFields(reader: PlainReader): Job {
  return {
    id: reader.whole('id', 1, limits.idMax),
    submission: reader.record('submission', submissionFields),
    state: reader.oneOf('state', STATES),
    version: reader.whole('version', 0, Number.MAX_SAFE_INTEGER),
    tick: reader.tick('tick'),
    idempotent: reader.flag('idempotent'),
    attempt: reader.whole('attempt', 0, limits.maxAttemptsMax),
    delivery: reader.whole('delivery', 0, limits.maxAttemptsMax + limits.deliveriesSpare),
    runs: reader.whole('runs', 0, limits.maxAttemptsMax + limits.deliveriesSpare),
    occurrence: reader.whole('occurrence', 0, limits.maxOccurrencesMax),
    startAt: reader.tick('startAt'),
    slotAt: reader.tickOrNull('slotAt'),
    token: reader.whole('token', 0, limits.tokenMax),
    lease: reader.recordOrNull('lease', leaseFields),
    answered: reader.recordOrNull('answered', answeredFields),
    testified: reader.recordOrNull('testified', answeredFields),
    testimonies: reader.whole('testimonies', 0, limits.testimonyPerJobMax),
    cancelRequested: reader.flag('cancelRequested'),
    outcomeUnknown: reader.flag('outcomeUnknown'),
    cause: reader.oneOfOrNull('cause', CAUSES),
    openSteps: reader.records('openSteps', limits.openStepsMax, openStepFields),
    requiredEffectCommitted: reader.flag('requiredEffectCommitted'),
    marked: reader.flag('marked'),
    endedAt: reader.tickOrNull('endedAt'),
  };
}

function leaseFields(reader: PlainReader): Lease {
  return {
    token: reader.whole('token', 1, limits.tokenMax),
    worker: reader.name('worker', limits.workerBytesMax),
    expiresAt: reader.tick('expiresAt'),
    lengthMs: reader.whole('lengthMs', limits.leaseMsMin, limits.leaseMsMax),
  };
}

function answeredFields(reader: PlainReader): Answered {
  return {
    token: reader.whole('token', 1, limits.tokenMax),
    outcome: reader.oneOf('outcome', OUTCOMES),
    digest: reader.digest('digest'),
  };
}

function jobRelations(job: Job): readonly Relation[] {
  return [
    ...submissionRelations(job.submission).map(
      ([holds, field, problem]): Relation => [holds, `submission.${field}`, problem],
    ),
    ...custodyRelations(job),
    ...countRelations(job),
    ...endRelations(job),
  ];
}

function custodyRelations(job: Job): readonly Relation[] {
  const { state, lease, answered, testified, token } = job;
  const held = state === STATE.LEASED || state === STATE.RUNNING;
  const uncertain = state === STATE.UNCERTAIN;
  const reported = testified !== null;
  return [
    [held === (lease !== null), 'lease', 'must be there exactly when the job is LEASED or RUNNING'],
    [lease === null || lease.token === token, 'lease.token', 'must be the token of the job'],
    [token > 0 || job.delivery === 0, 'token', 'must be above 0 for a job that was delivered'],
    [(answered?.token ?? 0) <= token, 'answered.token', 'must not be above the token of the job'],
    [reported === job.testimonies > 0, 'testimonies', 'must be above 0 exactly when testified is there'],
    [!reported || uncertain, 'testified', 'must be null unless the job is UNCERTAIN'],
    [!reported || testified.token === token, 'testified.token', 'must be the token of the job'],
  ];
}

function countRelations(job: Job): readonly Relation[] {
  const { submission, state, attempt, runs, delivery, occurrence } = job;
  const ran = state === STATE.RUNNING || state === STATE.UNCERTAIN;
  const first = submission.inherited?.occurrence ?? 0;
  const last = submission.recurrence === null ? first : submission.recurrence.maxOccurrences - 1;
  const recurring = submission.recurrence !== null;
  return [
    [
      !job.idempotent || submission.idempotent,
      'idempotent',
      'must not be true when the submission says false',
    ],
    [attempt <= submission.maxAttempts, 'attempt', 'must not be above submission.maxAttempts'],
    [attempt <= runs, 'runs', 'must not be below attempt'],
    [runs <= delivery, 'delivery', 'must not be below runs'],
    [delivery <= submission.maxDeliveries, 'delivery', 'must not be above submission.maxDeliveries'],
    [state !== STATE.LEASED || delivery > 0, 'delivery', 'must be above 0 for a job that is LEASED'],
    [!ran || attempt > 0, 'attempt', 'must be above 0 for a job that is RUNNING or UNCERTAIN'],
    [recurring === (job.slotAt !== null), 'slotAt', 'must be there exactly when the job recurs'],
    [occurrence >= first && occurrence <= last, 'occurrence', `must be from ${first} to ${last}`],
    [stepKeysDiffer(job.openSteps), 'openSteps', 'must not name a key twice'],
    [
      !job.requiredEffectCommitted || submission.requiresEffect !== null,
      'requiredEffectCommitted',
      'needs submission.requiresEffect',
    ],
  ];
}

function endRelations(job: Job): readonly Relation[] {
  const { state, cause } = job;
  const ended = stateIsTerminal(state);
  const waits = state === STATE.PENDING || state === STATE.SCHEDULED || state === STATE.LEASED;
  const explained = cause !== null || !(ended || state === STATE.UNCERTAIN);
  return [
    [ended === (job.endedAt !== null), 'endedAt', 'must be there exactly when the job has ended'],
    [!job.outcomeUnknown || ended, 'outcomeUnknown', 'must be false for a job that has not ended'],
    [!job.cancelRequested || !waits, 'cancelRequested', 'must be false for a job that waits or is LEASED'],
    [explained, 'cause', 'must be there for a job that is UNCERTAIN or has ended'],
  ];
}
