/** What operators do in memory: each act is decided once, bound to what they saw, and recorded with who and why. */
import {
  type Command,
  type CompensationStanding,
  decide,
  decideRedrive,
  lapse,
  limits,
  STATE,
  type StepVerdict,
  stateIsTerminal,
} from '../../core/index.ts';
import { sha256Hex } from '../../evidence/index.ts';
import { InvalidInputError } from '../errors.ts';
import {
  readBy,
  readFields,
  readFlag,
  readHolder,
  readJson,
  readList,
  readName,
  readWhole,
  type Told,
} from '../input.ts';
import type {
  OperatorRequest,
  ReconcileRequest,
  ReconcileVerdict,
  RedriveRequest,
  RedriveVerdict,
  Verdict,
} from '../store.ts';
import { rowOf, settleOne, verdictOf } from './custody.ts';
import type { Row } from './tables.ts';
import { NO_CONTEXT, type World } from './world.ts';

const UNKNOWN_JOB = { ok: false, refused: 'unknown_job', job: null } as const;

interface Operator {
  readonly id: number;
  readonly actor: string;
  readonly reason: Told | null;
  readonly version: number | null;
}

function readOperator(request: OperatorRequest): Operator {
  readFields(request, 'request');
  const version = request.version ?? null;
  return {
    id: readWhole(request.id, 'id', 1, limits.idMax),
    ...readBy(request.by),
    version: version === null ? null : readWhole(version, 'version', 0, limits.idMax),
  };
}

export function cancel(world: World, request: OperatorRequest): Verdict {
  return operate(world, readOperator(request), 'cancel');
}

export function promote(world: World, request: OperatorRequest): Verdict {
  return operate(world, readOperator(request), 'promote');
}

function operate(world: World, operator: Operator, type: 'cancel' | 'promote'): Verdict {
  const now = world.now();
  const row = world.tables.rows.get(operator.id);
  if (row === undefined) return UNKNOWN_JOB;
  const { actor, reason, version } = operator;
  const command: Command = { type, actor, reason: reason?.digest ?? null, version };
  return verdictOf(world.decide(row, command, NO_CONTEXT, now, toldOf(reason)));
}

function toldOf(reason: Told | null): readonly Told[] {
  return reason === null ? [] : [reason];
}

/** Decides an UNCERTAIN attempt, and with it the internal job that asked and the redrive that was asked for. */
export function reconcile(world: World, request: ReconcileRequest): ReconcileVerdict {
  const { id, token } = readHolder(request, 'request');
  const { actor, reason, version } = readOperator(request);
  const steps = readSteps(request.steps ?? []);
  const now = world.now();
  const row = world.tables.rows.get(id);
  if (row === undefined) return UNKNOWN_JOB;
  const command: Command = {
    type: 'reconcile',
    token,
    decision: readDecision(request.decision),
    by: readRole(request.by.role ?? 'person'),
    actor,
    reason: reason?.digest ?? null,
    version,
    steps: steps.map(({ key, tookPlace, result }) => ({ key, tookPlace, result })),
  };
  const foreseen = decide(row.job, command, NO_CONTEXT, now);
  if (foreseen.accepted && request.internal != null) {
    const { worker } = request.internal;
    const holder = readHolder(request.internal, 'internal');
    const link = world.tables.rows.get(holder.id)?.job.submission.internal;
    if (link?.purpose !== 'reconcile' || link.parentId !== id || link.parentToken !== token) {
      throw new InvalidInputError('internal.id', 'is not the reconcile job of this attempt');
    }
    const asked = settleOne(world, { ...holder, worker, outcome: 'succeeded' }, 'internal', now);
    // A reconciler that lost its own custody may not decide any more: somebody else asks, or asked, since.
    if (!asked.ok) return { ok: false, refused: asked.refused, job: world.lapseRow(row, now).job };
  }
  const decision = world.decide(row, command, NO_CONTEXT, now, toldOf(reason));
  if (!decision.accepted) return { ok: false, refused: decision.refused, job: decision.job };
  world.markSteps(row.job, steps);
  const decided = { ok: true, duplicate: false, job: decision.job } as const;
  if (request.redrive == null || request.decision !== 'failed') {
    return { ...decided, redriven: null, redriveRefused: null };
  }
  const again = redriveRow(world, rowOf(world, id), request.redrive.deadline, null, now);
  if ('refused' in again) return { ...decided, redriven: null, redriveRefused: again.refused };
  world.act('redrive', now, { actor, reason: reason?.text ?? null }, linkDetail(id, again.made.job.id));
  return { ...decided, redriven: again.made.job, redriveRefused: null };
}

function readRole(role: unknown): 'person' | 'reconciler' {
  if (role === 'person' || role === 'reconciler') return role;
  throw new InvalidInputError('by.role', 'must be person or reconciler');
}

function readDecision(decision: unknown): 'succeeded' | 'failed' | 'retry' {
  if (decision === 'succeeded' || decision === 'failed' || decision === 'retry') return decision;
  throw new InvalidInputError('decision', 'must be succeeded, failed or retry');
}

function readSteps(
  steps: NonNullable<ReconcileRequest['steps']>,
): readonly (StepVerdict & { readonly text: string | null })[] {
  return readList(steps, 'steps', limits.openStepsMax).map((step, index) => {
    const key = readName(
      readFields(step, `steps[${index}]`).key,
      `steps[${index}].key`,
      limits.effectKeyBytesMax,
    );
    readFlag(step.tookPlace, `steps[${index}].tookPlace`);
    const text = step.tookPlace ? readJson(step.result ?? null, `steps[${index}].result`) : null;
    return { key, tookPlace: step.tookPlace, result: text === null ? null : sha256Hex(text), text };
  });
}

export function redrive(world: World, request: RedriveRequest): RedriveVerdict {
  const { id, actor, reason, version } = readOperator(request);
  const deadline = request.deadline ?? null;
  if (deadline !== null) readWhole(deadline, 'deadline', 0, limits.tickMax);
  const now = world.now();
  const found = world.tables.rows.get(id);
  if (found === undefined) return UNKNOWN_JOB;
  if (request.dryRun === true) {
    const { job } = lapse(found.job, now);
    const foreseen = decideAgain(world, { ...found, job }, deadline, version, now);
    return 'refused' in foreseen
      ? { ok: false, refused: foreseen.refused, job }
      : { ok: true, job, redriven: null };
  }
  const row = world.lapseRow(found, now);
  const again = redriveRow(world, row, deadline, version, now);
  if ('refused' in again) return { ok: false, refused: again.refused, job: row.job };
  world.act('redrive', now, { actor, reason: reason?.text ?? null }, linkDetail(id, again.made.job.id));
  return { ok: true, job: row.job, redriven: again.made.job };
}

function linkDetail(from: number, to: number): string {
  return JSON.stringify({ from, to });
}

type Redriven = ReturnType<typeof decideRedrive>;

/** Makes the new job and links the old one to it. */
function redriveRow(
  world: World,
  row: Row,
  deadline: number | null,
  version: number | null,
  now: number,
): Exclude<Redriven, { submission: unknown }> | { readonly made: Row } {
  const { queue } = row.job.submission;
  if (
    world.index.unresolved(queue) >=
    (world.tables.queues.get(queue)?.maxUnresolved ?? Number.POSITIVE_INFINITY)
  ) {
    world.lapseOverdue(now, Number.MAX_SAFE_INTEGER);
  }
  const decided = decideAgain(world, row, deadline, version, now);
  if ('refused' in decided) return decided;
  const made = world.admit(decided.submission, row.payload);
  world.amend(row, { redrivenTo: made.job.id });
  return { made };
}

function decideAgain(
  world: World,
  row: Row,
  deadline: number | null,
  version: number | null,
  now: number,
): Redriven {
  const { queue } = row.job.submission;
  return decideRedrive(
    row.job,
    { deadline, version },
    {
      now,
      unresolved: world.index.unresolved(queue),
      maxUnresolved: world.tables.queues.get(queue)?.maxUnresolved ?? null,
      freshLineage: world.options.randomId(),
      redrivenTo: row.redrivenTo,
      compensation: standingOf(world, row),
    },
  );
}

function standingOf(world: World, row: Row): CompensationStanding {
  const compensation = world.compensationOf(row.job);
  if (compensation === null) return 'none';
  if (!stateIsTerminal(compensation.job.state)) return 'unresolved';
  return compensation.job.state === STATE.SUCCEEDED ? 'succeeded' : 'failed';
}

export function dismiss(world: World, request: OperatorRequest): Verdict {
  const { id, actor, reason, version } = readOperator(request);
  const now = world.now();
  const found = world.tables.rows.get(id);
  if (found === undefined) return UNKNOWN_JOB;
  const row = world.lapseRow(found, now);
  const { job } = row;
  if (version !== null && version !== job.version) return { ok: false, refused: 'version_mismatch', job };
  if (!stateIsTerminal(job.state)) return { ok: false, refused: 'wrong_state', job };
  if (row.dismissed !== null) return { ok: true, duplicate: true, job };
  const dismissed = { actor, reason: reason?.text ?? null, tick: now };
  world.amend(row, { dismissed });
  world.act('dismiss', now, dismissed, JSON.stringify({ id }));
  return { ok: true, duplicate: false, job };
}
