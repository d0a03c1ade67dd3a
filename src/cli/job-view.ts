/** Jobs as the command line shows them: one JSON shape for lists and one for a single job, and their lines of a table. */
import { type Job, STATE, STATE_NAMES, type StateName } from '../core/index.ts';
import type { JobView, NeedsYou } from '../store/store.ts';
import type { Cell, Colour } from './output.ts';
import { relativeTime, timeOf } from './output.ts';

/** A job in lists. Ticks are milliseconds since 1970; fields are only ever added. */
export interface JobSummary {
  readonly id: number;
  readonly kind: string;
  readonly revision: number;
  readonly queue: string;
  readonly state: StateName;
  readonly cause: string | null;
  readonly priority: number;
  readonly orderingKey: string | null;
  readonly idempotencyKey: string | null;
  readonly idempotent: boolean;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly delivery: number;
  readonly token: number;
  readonly version: number;
  readonly admittedAt: number;
  readonly startAt: number;
  readonly deadline: number | null;
  readonly changedAt: number;
  readonly endedAt: number | null;
  readonly lease: { readonly worker: string; readonly token: number; readonly expiresAt: number } | null;
  readonly cancelRequested: boolean;
  readonly needsYou: NeedsYou | null;
}

/** The shape of `JobSummary` as the reference shows it. */
export const JOB_SHAPE = `{ id, kind, revision, queue, state, cause, priority, orderingKey, idempotencyKey, idempotent,
  attempt, maxAttempts, delivery, token, version, admittedAt, startAt, deadline, changedAt, endedAt,
  lease: { worker, token, expiresAt } | null, cancelRequested, needsYou }`;

export function summaryOf(job: Job, needsYou: NeedsYou | null): JobSummary {
  const { submission, lease } = job;
  return {
    id: job.id,
    kind: submission.kind,
    revision: submission.revision,
    queue: submission.queue,
    state: stateName(job),
    cause: job.cause,
    priority: submission.priority,
    orderingKey: submission.orderingKey,
    idempotencyKey: submission.idempotencyKey,
    idempotent: job.idempotent,
    attempt: job.attempt,
    maxAttempts: submission.maxAttempts,
    delivery: job.delivery,
    token: job.token,
    version: job.version,
    admittedAt: submission.admittedAt,
    startAt: job.startAt,
    deadline: submission.deadline,
    changedAt: job.tick,
    endedAt: job.endedAt,
    lease: lease === null ? null : { worker: lease.worker, token: lease.token, expiresAt: lease.expiresAt },
    cancelRequested: job.cancelRequested,
    needsYou,
  };
}

export function summaryOfView(view: JobView): JobSummary {
  return summaryOf(view.job, view.needsYou);
}

export function stateName({ state }: { readonly state: number }): StateName {
  return STATE_NAMES[state] ?? 'PERMANENT_FAILURE';
}

const COLOURS: Readonly<Record<number, Colour>> = {
  [STATE.PENDING]: 'cyan',
  [STATE.SCHEDULED]: 'cyan',
  [STATE.LEASED]: 'cyan',
  [STATE.RUNNING]: 'bold',
  [STATE.SUCCEEDED]: 'green',
  [STATE.PERMANENT_FAILURE]: 'red',
  [STATE.CANCELLED]: 'dim',
  [STATE.UNCERTAIN]: 'magenta',
  [STATE.DEAD_LETTERED]: 'red',
};

export function stateCell(job: { readonly state: number }): Cell {
  return { text: stateName(job), colour: COLOURS[job.state] ?? 'red' };
}

export const JOB_HEADS: readonly string[] = [
  'ID',
  'STATE',
  'KIND',
  'QUEUE',
  'LANE',
  'ATTEMPT',
  'CHANGED',
  'NEEDS YOU',
];

export function jobRow({ job, needsYou }: JobView, now: number): readonly Cell[] {
  const { kind, queue, orderingKey, maxAttempts } = job.submission;
  return [
    job.id,
    stateCell(job),
    kind,
    queue,
    orderingKey ?? '-',
    `${job.attempt}/${maxAttempts}`,
    `${timeOf(job.tick)} (${relativeTime(job.tick, now)})`,
    needsYou === null ? '' : { text: needsYou.replaceAll('_', ' '), colour: 'yellow' },
  ];
}

/** What a person should do about a job, with the command line to do it; null when nothing is asked of anybody. */
export function adviceFor({ job, needsYou }: JobView): string | null {
  const { id, token } = job;
  switch (needsYou) {
    case null:
      return null;
    case 'uncertain':
      return `Find out whether attempt ${job.attempt} took effect, then: custody reconcile ${id} --token ${token} --decision succeeded|failed|retry --reason '...'`;
    case 'outcome_unknown':
      return `Its last attempt may have taken effect. Look, then: custody redrive ${id} --reason '...', or custody dismiss ${id} --reason '...'`;
    case 'compensation_required':
      return `It ran and then ended without success, and nothing undoes it by itself. Undo what it did, then: custody dismiss ${id} --reason '...'`;
    case 'compensation_failed':
      return `Its compensation failed too. Undo what it did by hand, then: custody dismiss ${id} --reason '...'`;
    case 'stranded':
      return `No worker can read its payload. Deploy a worker that can, or: custody cancel ${id} --reason '...'`;
    case 'contradiction':
      return `A late report says otherwise than what it ended as. Compare (custody show ${id}), then: custody dismiss ${id} --reason '...'`;
  }
}
