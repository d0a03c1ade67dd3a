/** Whether a request becomes a job: idempotency, deadline and capacity in that order; a refusal changes nothing. */

import type { InternalLink, Job, Submission } from './job.ts';
import { limits } from './limits.ts';
import type { AdmissionRefusal } from './refusal.ts';
import { type Asked, INTERNAL_KEY_PREFIX } from './request.ts';
import { recurrenceOverflows } from './schedule.ts';
import { addTicks, isTick } from './ticks.ts';

/** SHA-256 of the text's UTF-8 bytes as lower-case hex: given as an argument, since core imports nothing. */
export type Sha256 = (text: string) => string;

/** What the store knows of the idempotency key asked for: a job, or the tombstone of one that was pruned. */
export interface KeyHolder {
  readonly jobId: number;
  readonly descriptor: string;
  /** Null when the job was pruned. */
  readonly submission: Submission | null;
}

/** What only the store knows at the moment of admission; all of it read under the same lock. */
export interface AdmissionContext {
  readonly now: number;
  readonly lineage: string;
  readonly sha256: Sha256;
  readonly keyHolder: KeyHolder | null;
  /** Unresolved jobs of the queue, internal ones not counted; anything when the queue has no bound. */
  readonly unresolved: number;
  readonly maxUnresolved: number | null;
}

/** An option of a duplicate request that differs from the existing job's and had no effect. */
export type IgnoredOption = 'priority' | 'delay' | 'deadline';

export type Admission =
  | { readonly outcome: 'created'; readonly submission: Submission }
  | { readonly outcome: 'duplicate'; readonly jobId: number; readonly ignored: readonly IgnoredOption[] }
  | { readonly outcome: 'refused'; readonly refused: AdmissionRefusal; readonly jobId: number | null }
  | { readonly outcome: 'overflow'; readonly field: string };

/**
 * Admits a request that was read, or says why not. The order is part of the contract: the same key with the same
 * content finds its job also at full capacity and after its deadline.
 *
 * @example
 * ```ts
 * const admission = admit(asked, { now, lineage, sha256, keyHolder: null, unresolved: 0, maxUnresolved: null });
 * ```
 */
export function admit(asked: Asked, context: AdmissionContext): Admission {
  const descriptor = context.sha256(descriptorText(asked));
  const holder = context.keyHolder;
  if (holder !== null) {
    if (holder.descriptor !== descriptor)
      return { outcome: 'refused', refused: 'conflict', jobId: holder.jobId };
    return { outcome: 'duplicate', jobId: holder.jobId, ignored: ignoredOptions(asked, holder.submission) };
  }
  if (!isTick(context.now)) return { outcome: 'overflow', field: 'now' };
  const startAt = asked.startAt ?? addTicks(context.now, asked.delayMs);
  if (startAt === 'tick_overflow') return { outcome: 'overflow', field: 'delayMs' };
  if (asked.recurrence !== null && recurrenceOverflows(startAt, asked.recurrence.intervalMs, context.now))
    return { outcome: 'overflow', field: 'recurrence' };
  const { deadline } = asked;
  if (deadline !== null && (deadline <= context.now || startAt >= deadline)) {
    return { outcome: 'refused', refused: 'deadline_passed', jobId: null };
  }
  if (context.maxUnresolved !== null && context.unresolved >= context.maxUnresolved) {
    return { outcome: 'refused', refused: 'capacity_exceeded', jobId: null };
  }
  const { payload, delayMs: _delayMs, ...policy } = asked;
  const submission: Submission = {
    ...policy,
    startAt,
    payloadDigest: context.sha256(payload),
    descriptor,
    lineage: context.lineage,
    admittedAt: context.now,
    maxDeliveries: limits.deliveriesSpare + asked.maxAttempts,
    internal: null,
    inherited: null,
  };
  return { outcome: 'created', submission };
}

/** The canonical JSON text whose digest tells whether a key is used again with the same content. */
export function descriptorText(
  asked: Pick<Asked, 'kind' | 'queue' | 'orderingKey' | 'payload' | 'recurrence'>,
): string {
  const text = (value: string | null): string => JSON.stringify(value);
  const { recurrence } = asked;
  const recurring =
    recurrence === null
      ? 'null'
      : `{"intervalMs":${recurrence.intervalMs},"maxCatchUp":${recurrence.maxCatchUp},"maxOccurrences":${recurrence.maxOccurrences}}`;
  const lane = `"orderingKey":${text(asked.orderingKey)}`;
  return `{"kind":${text(asked.kind)},${lane},"payload":${asked.payload},"queue":${text(asked.queue)},"recurrence":${recurring}}`;
}

/** Of a pruned job nobody knows the options any more, so none is called different. */
function ignoredOptions(asked: Asked, existing: Submission | null): readonly IgnoredOption[] {
  if (existing === null) return [];
  const ignored: IgnoredOption[] = [];
  if (asked.priority !== existing.priority) ignored.push('priority');
  const delayed = existing.startAt - existing.admittedAt;
  if (asked.startAt === null ? asked.delayMs !== delayed : asked.startAt !== existing.startAt)
    ignored.push('delay');
  if (asked.deadline !== existing.deadline) ignored.push('deadline');
  return ignored;
}

/** The key under which an internal job exists at most once. */
export function internalKey(link: InternalLink): string {
  return `${INTERNAL_KEY_PREFIX}${link.parentId}:${link.parentToken}:${link.purpose}`;
}

/** The payload of an internal job, as canonical JSON text. */
export function internalPayload(link: InternalLink): string {
  return `{"parentId":${link.parentId},"parentToken":${link.parentToken},"purpose":"${link.purpose}"}`;
}

/** The submission of an internal job: idempotent, without lane or deadline, ahead of everything, outside capacity. */
export function internalSubmission(
  parent: Job,
  link: InternalLink,
  startAt: number,
  context: { readonly now: number; readonly lineage: string; readonly sha256: Sha256 },
): Submission {
  const { kind, revision, queue, backoffBaseMs, backoffMaxMs } = parent.submission;
  const payload = internalPayload(link);
  return {
    kind,
    revision,
    queue,
    orderingKey: null,
    payloadDigest: context.sha256(payload),
    idempotencyKey: internalKey(link),
    descriptor: context.sha256(descriptorText({ kind, queue, orderingKey: null, payload, recurrence: null })),
    requestId: null,
    lineage: context.lineage,
    admittedAt: context.now,
    startAt,
    deadline: null,
    priority: limits.priorityInternal,
    idempotent: true,
    maxAttempts: limits.internalAttemptsMax,
    maxDeliveries: limits.deliveriesSpare + limits.internalAttemptsMax,
    backoffBaseMs,
    backoffMaxMs,
    reconcileAfterMs: 0,
    acceptLateReports: false,
    reconciles: false,
    compensates: false,
    requiresEffect: null,
    recurrence: null,
    internal: link,
    inherited: null,
  };
}
