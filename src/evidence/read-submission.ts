/** Reads a submission of unknown origin: what it returns is complete, within every bound, and shares nothing with it. */
import { internalKey } from '../core/admission.ts';
import type { Inherited, InternalLink, OpenStep, Recurrence, Submission } from '../core/job.ts';
import { limits } from '../core/limits.ts';
import { INTERNAL_KEY_PREFIX } from '../core/request.ts';
import { type PlainReader, type Read, type Relation, readRecord } from './plain-reader.ts';

const PURPOSES = ['reconcile', 'compensate'] as const satisfies readonly InternalLink['purpose'][];

/**
 * Reads plain JSON as a submission, or names the first field that cannot be one and the rule it breaks. Every field must
 * be there and no other; accessors are refused and never run. `path` begins the names of fields.
 *
 * @example
 * ```ts
 * const read = readSubmission(JSON.parse(text));
 * if (!read.ok) console.error(read.problem.field, read.problem.problem);
 * ```
 */
export function readSubmission(value: unknown, path: string = 'submission'): Read<Submission> {
  return readRecord(value, path, submissionFields, submissionRelations);
}

/** The fields of a submission; for readers of what holds one. */
export function submissionFields(reader: PlainReader): Submission {
  return {
    kind: reader.name('kind', limits.kindBytesMax),
    revision: reader.whole('revision', limits.revisionMin, limits.revisionMax),
    queue: reader.name('queue', limits.queueBytesMax),
    orderingKey: reader.nameOrNull('orderingKey', limits.orderingKeyBytesMax),
    payloadDigest: reader.digest('payloadDigest'),
    idempotencyKey: reader.nameOrNull('idempotencyKey', limits.idempotencyKeyBytesMax),
    descriptor: reader.digest('descriptor'),
    requestId: reader.nameOrNull('requestId', limits.requestIdBytesMax),
    lineage: reader.name('lineage', limits.lineageBytesMax),
    admittedAt: reader.tick('admittedAt'),
    startAt: reader.tick('startAt'),
    deadline: reader.tickOrNull('deadline'),
    priority: reader.whole('priority', limits.priorityMin, limits.priorityInternal),
    idempotent: reader.flag('idempotent'),
    maxAttempts: reader.whole('maxAttempts', limits.maxAttemptsMin, limits.maxAttemptsMax),
    maxDeliveries: reader.whole('maxDeliveries', 1, limits.maxAttemptsMax + limits.deliveriesSpare),
    backoffBaseMs: reader.whole('backoffBaseMs', 0, limits.backoffMsMax),
    backoffMaxMs: reader.whole('backoffMaxMs', 0, limits.backoffMsMax),
    reconcileAfterMs: reader.whole('reconcileAfterMs', 0, limits.reconcileAfterMsMax),
    acceptLateReports: reader.flag('acceptLateReports'),
    reconciles: reader.flag('reconciles'),
    compensates: reader.flag('compensates'),
    requiresEffect: reader.nameOrNull('requiresEffect', limits.effectKeyBytesMax),
    recurrence: reader.recordOrNull('recurrence', recurrenceFields),
    internal: reader.recordOrNull('internal', internalFields),
    inherited: reader.recordOrNull('inherited', inheritedFields),
  };
}

function recurrenceFields(reader: PlainReader): Recurrence {
  return {
    intervalMs: reader.whole('intervalMs', 1, limits.recurrenceIntervalMsMax),
    maxOccurrences: reader.whole('maxOccurrences', 1, limits.maxOccurrencesMax),
    maxCatchUp: reader.whole('maxCatchUp', 0, limits.maxCatchUpMax),
  };
}

function internalFields(reader: PlainReader): InternalLink {
  return {
    purpose: reader.oneOf('purpose', PURPOSES),
    parentId: reader.whole('parentId', 1, limits.idMax),
    parentToken: reader.whole('parentToken', 1, limits.tokenMax),
  };
}

function inheritedFields(reader: PlainReader): Inherited {
  return {
    fromId: reader.whole('fromId', 1, limits.idMax),
    occurrence: reader.whole('occurrence', 0, limits.maxOccurrencesMax),
    requiredEffectCommitted: reader.flag('requiredEffectCommitted'),
    openSteps: reader.records('openSteps', limits.openStepsMax, openStepFields),
  };
}

/** The fields of an open step; for readers of what holds one. */
export function openStepFields(reader: PlainReader): OpenStep {
  return { key: reader.name('key', limits.effectKeyBytesMax), idempotent: reader.flag('idempotent') };
}

/** Whether no two open steps have the same key. */
export function stepKeysDiffer(steps: readonly OpenStep[]): boolean {
  return new Set(steps.map((step) => step.key)).size === steps.length;
}

/** What must hold between the fields of a submission. */
export function submissionRelations(submission: Submission): readonly Relation[] {
  const { deadline, recurrence, internal, inherited } = submission;
  return [
    [submission.maxDeliveries >= submission.maxAttempts, 'maxDeliveries', 'must not be below maxAttempts'],
    [submission.backoffBaseMs <= submission.backoffMaxMs, 'backoffBaseMs', 'must not be above backoffMaxMs'],
    [deadline === null || deadline > submission.admittedAt, 'deadline', 'must be after admittedAt'],
    [deadline === null || deadline > submission.startAt, 'deadline', 'must be after startAt'],
    [recurrence === null || submission.orderingKey === null, 'orderingKey', 'must be null with recurrence'],
    ...(internal === null ? ordinaryRelations(submission) : internalRelations(submission, internal)),
    ...(inherited === null ? [] : inheritedRelations(submission, inherited)),
  ];
}

function ordinaryRelations(submission: Submission): readonly Relation[] {
  const reserved = submission.idempotencyKey?.startsWith(INTERNAL_KEY_PREFIX) === true;
  return [
    [submission.priority <= limits.priorityMax, 'priority', `must not be above ${limits.priorityMax}`],
    [!reserved, 'idempotencyKey', `must not start with ${INTERNAL_KEY_PREFIX}, which internal jobs have`],
  ];
}

function internalRelations(submission: Submission, link: InternalLink): readonly Relation[] {
  const must = (field: keyof Submission, value: string | number | boolean | null): Relation => [
    submission[field] === value,
    field,
    `must be ${value} for an internal job`,
  ];
  return [
    must('idempotent', true),
    must('priority', limits.priorityInternal),
    must('idempotencyKey', internalKey(link)),
    must('orderingKey', null),
    must('deadline', null),
    must('recurrence', null),
    must('requiresEffect', null),
    must('reconciles', false),
    must('compensates', false),
    must('inherited', null),
  ];
}

function inheritedRelations(submission: Submission, inherited: Inherited): readonly Relation[] {
  const { recurrence, requiresEffect } = submission;
  const occurrences = recurrence?.maxOccurrences ?? 1;
  const committed = inherited.requiredEffectCommitted;
  return [
    [submission.idempotencyKey === null, 'idempotencyKey', 'must be null for a redriven job'],
    [inherited.occurrence < occurrences, 'inherited.occurrence', `must be below ${occurrences}`],
    [!committed || requiresEffect !== null, 'inherited.requiredEffectCommitted', 'needs requiresEffect'],
    [stepKeysDiffer(inherited.openSteps), 'inherited.openSteps', 'must not name a key twice'],
  ];
}
