/** What may happen in a random history, as plain data: numbers that pick are resolved against what is there by then. */
import fc from 'fast-check';
import type { Decided, Outcome } from '../../src/core/index.ts';

/** A job to ask for; times are relative, names are small numbers so that they meet again. */
export interface JobSpec {
  readonly kind: number;
  readonly revision: number;
  readonly queue: number;
  readonly lane: number;
  readonly content: number;
  readonly idempotent: boolean;
  readonly priority: number;
  readonly delayMs: number;
  readonly deadlineIn: number | null;
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  readonly reconcileAfterMs: number;
  readonly acceptLateReports: boolean;
  readonly reconciles: boolean;
  readonly compensates: boolean;
  readonly requiresEffect: boolean;
  readonly intervalMs: number | null;
  readonly key: number | null;
  readonly requestId: number | null;
}

/** One call inside a transaction under a held token. */
export type Op =
  | {
      readonly op: 'commit' | 'begin_step' | 'finish_step';
      readonly key: number;
      readonly content: number;
      readonly safe: boolean;
    }
  | { readonly op: 'enqueue'; readonly spec: JobSpec }
  | { readonly op: 'settle'; readonly outcome: Outcome }
  | { readonly op: 'throw' };

export interface Report {
  readonly outcome: Outcome;
  readonly text: number;
  readonly delayMs: number | null;
  readonly jitterMs: number;
  readonly untilIn: number;
  readonly neverCalled: boolean;
  readonly byUpgrade: boolean;
}

export interface ClaimSpec {
  readonly worker: number;
  readonly leaseMs: number;
  readonly max: number;
  readonly begin: boolean;
  /** Which kinds it knows, at which revision, and whether it calls them idempotent. */
  readonly knows: 'all' | 'old' | 'one' | 'unsafe';
  readonly queue: number | null;
  readonly repeat: boolean;
}

/** How an operator picks its job: one the act may fit, or any, or one that is not there; and what version it saw. */
export interface Aim {
  readonly pick: number;
  readonly fit: 'fit' | 'any' | 'none';
  readonly version: 'right' | 'wrong' | 'none';
}

export type Action =
  | { readonly do: 'enqueue'; readonly specs: readonly JobSpec[]; readonly atomic: boolean }
  | { readonly do: 'ask_again'; readonly pick: number; readonly priority: number | null }
  | ({ readonly do: 'claim' } & ClaimSpec)
  | { readonly do: 'begin'; readonly worker: number; readonly pick: number }
  | { readonly do: 'extend'; readonly worker: number; readonly pick: number; readonly ms: number }
  | {
      readonly do: 'settle';
      readonly worker: number;
      readonly pick: number;
      readonly report: Report;
      readonly twice: boolean;
      readonly claim: ClaimSpec | null;
    }
  | { readonly do: 'repeat'; readonly worker: number; readonly outcome: Outcome | null }
  | {
      readonly do: 'zombie';
      readonly worker: number;
      readonly pick: number;
      readonly verb: 'begin' | 'extend' | 'settle' | 'transact';
      readonly forged: number;
      readonly report: Report;
    }
  | { readonly do: 'transact'; readonly worker: number; readonly pick: number; readonly ops: readonly Op[] }
  | { readonly do: 'answer'; readonly worker: number; readonly pick: number; readonly decision: Decided }
  | { readonly do: 'crash'; readonly worker: number }
  | { readonly do: 'garbage'; readonly pick: number }
  | { readonly do: 'lapse'; readonly limit: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'pass_to'; readonly pick: number; readonly short: boolean }
  | { readonly do: 'back'; readonly ms: number }
  | { readonly do: 'cancel' | 'promote' | 'dismiss'; readonly aim: Aim }
  | {
      readonly do: 'decide';
      readonly aim: Aim;
      readonly decision: Decided;
      readonly wrongToken: boolean;
      readonly tookPlace: boolean | null;
      readonly redrive: boolean;
    }
  | {
      readonly do: 'redrive';
      readonly aim: Aim;
      readonly deadlineIn: number | null;
      readonly dryRun: boolean;
    }
  | { readonly do: 'pause' | 'resume'; readonly queue: number }
  | { readonly do: 'configure'; readonly queue: number; readonly bound: number | null }
  | { readonly do: 'prune'; readonly afterMs: number; readonly undismissed: boolean; readonly limit: number }
  | { readonly do: 'move'; readonly as: 'reopen' | 'restart' | 'copy' }
  | { readonly do: 'look' };

const pick = fc.nat({ max: 999 });
const worker = fc.nat({ max: 2 });
const outcome = fc.constantFrom<Outcome>(
  'succeeded',
  'succeeded',
  'succeeded',
  'retryable',
  'retryable',
  'permanent',
  'uncertain',
  'snoozed',
  'interrupted',
  'refused',
);
const decision = fc.constantFrom<Decided>('succeeded', 'failed', 'retry');
const often = fc.constantFrom(true, true, true, false);
const seldom = fc.constantFrom(false, false, false, true);
/** A value in one case of `cases`, else null. */
function seldomly<Value>(value: fc.Arbitrary<Value>, cases = 2): fc.Arbitrary<Value | null> {
  return fc.oneof({ weight: cases - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });
}

/** A job request; `risky` ones are more often not idempotent and have hooks. */
export function jobSpec(risky: boolean): fc.Arbitrary<JobSpec> {
  return fc.record({
    kind: fc.nat({ max: 1 }),
    revision: fc.constantFrom(1, 1, 2),
    queue: fc.nat({ max: 1 }),
    lane: fc.constantFrom(0, 0, 1, 2),
    content: fc.nat({ max: 1 }),
    idempotent: risky ? fc.boolean() : often,
    priority: fc.integer({ min: -2, max: 2 }),
    delayMs: fc.constantFrom(0, 0, 0, 5, 40),
    deadlineIn: seldomly(fc.constantFrom(0, 20, 60, 150, 150, 400), 3),
    maxAttempts: fc.constantFrom(1, 2, 3, 3),
    backoffBaseMs: fc.constantFrom(0, 10),
    backoffMaxMs: fc.constantFrom(10, 60),
    reconcileAfterMs: fc.constantFrom(0, 30),
    acceptLateReports: often,
    reconciles: risky ? often : seldom,
    compensates: risky ? often : seldom,
    requiresEffect: seldom,
    intervalMs: fc.constantFrom(null, null, 25),
    key: seldomly(fc.nat({ max: 3 }), 4),
    requestId: seldomly(fc.nat({ max: 4 }), 4),
  });
}

const claimSpec = fc.record<ClaimSpec>({
  worker,
  leaseMs: fc.constantFrom(20, 60, 200),
  max: fc.integer({ min: 1, max: 3 }),
  begin: fc.constantFrom(true, true, false),
  knows: fc.constantFrom('all', 'all', 'all', 'all', 'old', 'one', 'unsafe'),
  queue: fc.constantFrom(null, null, 0, 1),
  repeat: fc.constantFrom(false, false, false, false, true),
});

const report = fc.record<Report>({
  outcome,
  text: fc.nat({ max: 1 }),
  delayMs: fc.constantFrom(null, null, null, 0, 30, 500, 500, 500, 31_622_400_001),
  jitterMs: fc.constantFrom(0, 0, 3),
  untilIn: fc.constantFrom(0, 1, 30, 300, 300),
  neverCalled: fc.boolean(),
  byUpgrade: fc.boolean(),
});

const aim = fc.record<Aim>({
  pick,
  fit: fc.constantFrom('fit', 'fit', 'fit', 'fit', 'any', 'any', 'none'),
  version: fc.constantFrom('none', 'none', 'right', 'wrong'),
});

function ops(spec: fc.Arbitrary<JobSpec>): fc.Arbitrary<readonly Op[]> {
  const mark = fc.record({
    key: fc.constantFrom(0, 0, 1),
    content: fc.constantFrom(0, 0, 0, 0, 0, 0, 1),
    safe: fc.boolean(),
  });
  return fc.array(
    fc.oneof(
      { weight: 6, arbitrary: mark.map((value): Op => ({ op: 'commit', ...value })) },
      { weight: 6, arbitrary: mark.map((value): Op => ({ op: 'begin_step', ...value })) },
      { weight: 6, arbitrary: mark.map((value): Op => ({ op: 'finish_step', ...value })) },
      { weight: 2, arbitrary: spec.map((value): Op => ({ op: 'enqueue', spec: value })) },
      { weight: 2, arbitrary: outcome.map((value): Op => ({ op: 'settle', outcome: value })) },
      { weight: 1, arbitrary: fc.constant<Op>({ op: 'throw' }) },
    ),
    { minLength: 1, maxLength: 3 },
  );
}

/** Every action by its name. */
export function actionsFor(spec: fc.Arbitrary<JobSpec>): {
  readonly [Name in Action['do']]: fc.Arbitrary<Action>;
} {
  const operator = <Name extends 'cancel' | 'promote' | 'dismiss'>(name: Name): fc.Arbitrary<Action> =>
    fc.record({ do: fc.constant(name), aim });
  const ofQueue = <Name extends 'pause' | 'resume'>(name: Name): fc.Arbitrary<Action> =>
    fc.record({ do: fc.constant(name), queue: fc.nat({ max: 1 }) });
  return {
    enqueue: fc.record({
      do: fc.constant('enqueue'),
      specs: fc.array(spec, { minLength: 1, maxLength: 3 }),
      atomic: seldom,
    }),
    ask_again: fc.record({
      do: fc.constant('ask_again'),
      pick,
      priority: seldomly(fc.integer({ min: -2, max: 2 })),
    }),
    claim: claimSpec.map((value): Action => ({ do: 'claim', ...value })),
    begin: fc.record({ do: fc.constant('begin'), worker, pick }),
    extend: fc.record({ do: fc.constant('extend'), worker, pick, ms: fc.constantFrom(1, 30, 200) }),
    settle: fc.record({
      do: fc.constant('settle'),
      worker,
      pick,
      report,
      twice: seldom,
      claim: seldomly(claimSpec, 3),
    }),
    repeat: fc.record({ do: fc.constant('repeat'), worker, outcome: seldomly(outcome, 3) }),
    zombie: fc.record({
      do: fc.constant('zombie'),
      worker,
      pick,
      verb: fc.constantFrom('begin', 'extend', 'settle', 'settle', 'settle', 'transact'),
      forged: fc.constantFrom(0, 0, 0, 0, -1, 1, 1_000),
      report,
    }),
    transact: fc.record({ do: fc.constant('transact'), worker, pick, ops: ops(spec) }),
    answer: fc.record({ do: fc.constant('answer'), worker, pick, decision }),
    crash: fc.record({ do: fc.constant('crash'), worker }),
    garbage: fc.record({ do: fc.constant('garbage'), pick }),
    lapse: fc.record({ do: fc.constant('lapse'), limit: fc.constantFrom(1, 500) }),
    pass: fc.record({
      do: fc.constant('pass'),
      ms: fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom(1, 2, 5, 5, 15, 15, 40) },
        { weight: 4, arbitrary: fc.constantFrom(100, 1_000, 20_000) },
        // Longer than keys are kept.
        { weight: 1, arbitrary: fc.constant(2_678_400_000) },
      ),
    }),
    pass_to: fc.record({ do: fc.constant('pass_to'), pick, short: fc.constantFrom(false, false, true) }),
    back: fc.record({ do: fc.constant('back'), ms: fc.constantFrom(1, 30, 5_000, 5_001, 60_000) }),
    cancel: operator('cancel'),
    promote: operator('promote'),
    dismiss: operator('dismiss'),
    decide: fc.record({
      do: fc.constant('decide'),
      aim,
      decision,
      wrongToken: seldom,
      tookPlace: fc.constantFrom(null, true, false),
      redrive: seldom,
    }),
    redrive: fc.record({
      do: fc.constant('redrive'),
      aim,
      deadlineIn: fc.constantFrom(null, null, 0, 200),
      dryRun: seldom,
    }),
    pause: ofQueue('pause'),
    resume: ofQueue('resume'),
    configure: fc.record({
      do: fc.constant('configure'),
      queue: fc.nat({ max: 1 }),
      bound: seldomly(fc.integer({ min: 0, max: 5 })),
    }),
    prune: fc.record({
      do: fc.constant('prune'),
      afterMs: fc.constantFrom(0, 100),
      undismissed: seldom,
      limit: fc.constantFrom(1, 5_000),
    }),
    move: fc.record({ do: fc.constant('move'), as: fc.constantFrom('reopen', 'restart', 'copy') }),
    look: fc.record({ do: fc.constant('look') }),
  };
}
