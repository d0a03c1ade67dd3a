/** What operators do: each act is decided once, bound to what they saw, and recorded with who and why. */
import {
  type Command,
  type CompensationStanding,
  custodyOf,
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
  readFlag,
  readHolder,
  readJson,
  readList,
  readName,
  readOptions,
  readWhole,
  type Told,
} from '../input.ts';
import type { Row } from '../session.ts';
import type {
  OperatorRequest,
  ReconcileRequest,
  ReconcileVerdict,
  RedriveRequest,
  RedriveVerdict,
  Verdict,
} from '../store.ts';
import { settleOne, verdictOf } from './custody.ts';
import { type Engine, NO_CONTEXT } from './engine.ts';
import { compensationOf } from './views.ts';

const UNKNOWN_JOB = { ok: false, refused: 'unknown_job', job: null } as const;

interface Operator {
  readonly id: number;
  readonly actor: string;
  readonly reason: Told | null;
  readonly version: number | null;
}

function readOperator(given: OperatorRequest): Operator {
  const request = readOptions(given, 'request', ['id', 'by', 'version']);
  return operatorOf(request);
}

function operatorOf(request: OperatorRequest): Operator {
  const version = request.version ?? null;
  return {
    id: readWhole(request.id, 'id', 1, limits.idMax),
    ...readBy(request.by),
    version: version === null ? null : readWhole(version, 'version', 0, limits.idMax),
  };
}

export function cancel(engine: Engine, request: OperatorRequest): Verdict {
  return operate(engine, readOperator(request), 'cancel');
}

export function promote(engine: Engine, request: OperatorRequest): Verdict {
  return operate(engine, readOperator(request), 'promote');
}

function operate(engine: Engine, operator: Operator, type: 'cancel' | 'promote'): Verdict {
  const row = engine.session.row(operator.id);
  if (row === undefined) return UNKNOWN_JOB;
  const { actor, reason, version } = operator;
  const command: Command = { type, actor, reason: reason?.digest ?? null, version };
  return verdictOf(engine.decide(row, command, NO_CONTEXT, toldOf(reason)));
}

function toldOf(reason: Told | null): readonly Told[] {
  return reason === null ? [] : [reason];
}

/** Decides an UNCERTAIN attempt, and with it the internal job that asked and the redrive that was asked for. */
export function reconcile(engine: Engine, given: ReconcileRequest): ReconcileVerdict {
  const request = readOptions(given, 'request', [
    'id',
    'token',
    'decision',
    'by',
    'steps',
    'version',
    'redrive',
    'internal',
  ]);
  const { id, token } = readHolder({ id: request.id, token: request.token }, 'request');
  const { actor, reason, version } = operatorOf(request);
  const deadline = request.redrive == null ? null : readDeadline(request.redrive);
  const steps = readSteps(request.steps ?? []);
  const row = engine.session.row(id);
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
  const foreseen = decide(row.job, command, NO_CONTEXT, engine.now);
  if (foreseen.accepted && request.internal != null) {
    const { worker, ...held } = readOptions(request.internal, 'internal', ['id', 'token', 'worker']);
    const holder = readHolder(held, 'internal');
    const link = engine.session.row(holder.id)?.job.submission.internal;
    if (link?.purpose !== 'reconcile' || link.parentId !== id || link.parentToken !== token) {
      throw new InvalidInputError('internal.id', 'is not the reconcile job of this attempt');
    }
    // Looked at before it is settled: what is refused here says nothing about the asking job itself.
    const custody = custodyOf(engine.lapseRow(engine.rowOf(holder.id)).job, holder.token);
    if (typeof custody === 'string') return { ok: false, refused: custody, job: engine.lapseRow(row).job };
    const asked = settleOne(engine, { ...holder, worker, outcome: 'succeeded' }, 'internal');
    // A reconciler that lost its own custody may not decide any more: somebody else asks, or asked, since.
    if (!asked.ok) return { ok: false, refused: asked.refused, job: engine.lapseRow(row).job };
  }
  const decision = engine.decide(row, command, NO_CONTEXT, toldOf(reason));
  if (!decision.accepted) return { ok: false, refused: decision.refused, job: decision.job };
  engine.markSteps(row.job, steps);
  const decided = { ok: true, duplicate: false, job: decision.job } as const;
  if (request.redrive == null || request.decision !== 'failed') {
    return { ...decided, redriven: null, redriveRefused: null };
  }
  const again = redriveRow(engine, engine.rowOf(id), deadline, null);
  if ('refused' in again) return { ...decided, redriven: null, redriveRefused: again.refused };
  engine.session.addAct(
    'redrive',
    { actor, reason: reason?.text ?? null },
    linkDetail(id, again.made.job.id),
  );
  return { ...decided, redriven: again.made.job, redriveRefused: null };
}

function readDeadline(given: { readonly deadline: number | null }): number | null {
  const { deadline } = readOptions(given, 'redrive', ['deadline']);
  return deadline === null ? null : readWhole(deadline, 'deadline', 0, limits.tickMax);
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
  return readList(steps, 'steps', limits.openStepsMax).map((one, index) => {
    const step = readOptions(one, `steps[${index}]`, ['key', 'tookPlace', 'result']);
    const key = readName(step.key, `steps[${index}].key`, limits.effectKeyBytesMax);
    readFlag(step.tookPlace, `steps[${index}].tookPlace`);
    const text = step.tookPlace ? readJson(step.result ?? null, `steps[${index}].result`) : null;
    return { key, tookPlace: step.tookPlace, result: text === null ? null : sha256Hex(text), text };
  });
}

export function redrive(engine: Engine, given: RedriveRequest): RedriveVerdict {
  const request = readOptions(given, 'request', ['id', 'by', 'version', 'deadline', 'dryRun']);
  const { id, actor, reason, version } = operatorOf(request);
  const deadline = readDeadline({ deadline: request.deadline ?? null });
  const dryRun = readFlag(request.dryRun ?? false, 'dryRun');
  const found = engine.session.row(id);
  if (found === undefined) return UNKNOWN_JOB;
  if (dryRun) {
    const { job } = lapse(found.job, engine.now);
    const foreseen = decideAgain(engine, { ...found, job }, deadline, version);
    return 'refused' in foreseen
      ? { ok: false, refused: foreseen.refused, job }
      : { ok: true, job, redriven: null };
  }
  const row = engine.lapseRow(found);
  const again = redriveRow(engine, row, deadline, version);
  if ('refused' in again) return { ok: false, refused: again.refused, job: row.job };
  engine.session.addAct(
    'redrive',
    { actor, reason: reason?.text ?? null },
    linkDetail(id, again.made.job.id),
  );
  return { ok: true, job: row.job, redriven: again.made.job };
}

function linkDetail(from: number, to: number): string {
  return JSON.stringify({ from, to });
}

type Redriven = ReturnType<typeof decideRedrive>;

/** Makes the new job and links the old one to it. */
function redriveRow(
  engine: Engine,
  row: Row,
  deadline: number | null,
  version: number | null,
): Exclude<Redriven, { submission: unknown }> | { readonly made: Row } {
  const { queue } = row.job.submission;
  if (
    engine.session.unresolved(queue) >=
    (engine.session.queue(queue)?.maxUnresolved ?? Number.POSITIVE_INFINITY)
  ) {
    engine.lapseOverdue(Number.MAX_SAFE_INTEGER);
  }
  const decided = decideAgain(engine, row, deadline, version);
  if ('refused' in decided) return decided;
  const made = engine.admit(decided.submission, engine.session.payload(row.job.id));
  engine.amend(row, { redrivenTo: made.job.id });
  return { made };
}

function decideAgain(engine: Engine, row: Row, deadline: number | null, version: number | null): Redriven {
  const { queue } = row.job.submission;
  return decideRedrive(
    row.job,
    { deadline, version },
    {
      now: engine.now,
      unresolved: engine.session.unresolved(queue),
      maxUnresolved: engine.session.queue(queue)?.maxUnresolved ?? null,
      freshLineage: engine.session.randomId(),
      redrivenTo: row.redrivenTo,
      compensation: standingOf(engine, row),
    },
  );
}

function standingOf(engine: Engine, row: Row): CompensationStanding {
  const compensation = compensationOf(engine.session, row.job);
  if (compensation === null) return 'none';
  if (!stateIsTerminal(compensation.job.state)) return 'unresolved';
  return compensation.job.state === STATE.SUCCEEDED ? 'succeeded' : 'failed';
}

export function dismiss(engine: Engine, request: OperatorRequest): Verdict {
  const { id, actor, reason, version } = readOperator(request);
  const found = engine.session.row(id);
  if (found === undefined) return UNKNOWN_JOB;
  const row = engine.lapseRow(found);
  const { job } = row;
  if (version !== null && version !== job.version) return { ok: false, refused: 'version_mismatch', job };
  if (!stateIsTerminal(job.state)) return { ok: false, refused: 'wrong_state', job };
  if (row.dismissed !== null) return { ok: true, duplicate: true, job };
  const dismissed = { actor, reason: reason?.text ?? null, tick: engine.now };
  engine.amend(row, { dismissed });
  engine.session.addAct('dismiss', dismissed, JSON.stringify({ id }));
  return { ok: true, duplicate: false, job };
}
