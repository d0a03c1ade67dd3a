/** Facts of every type: one sample each, and arbitraries over their whole domain. */
import fc from 'fast-check';
import { DECIDED, DECIDED_BY, type Fact, type StepVerdict } from '../../src/core/facts.ts';
import { CAUSES, OUTCOMES } from '../../src/core/job.ts';
import { limits } from '../../src/core/limits.ts';
import { nameProblem } from '../../src/core/request.ts';
import type { State } from '../../src/core/states.ts';
import { sha256Hex } from '../../src/evidence/index.ts';

const held = { tick: 2_000, expiresAt: 32_000, worker: 'w-1', token: 12 } as const;
const unheld = { tick: 2_000, expiresAt: null } as const;
const DIGEST = sha256Hex('something');

/** One fact of each type, in the order of the tags. */
export const SAMPLES: { readonly [Type in Fact['type']]: Extract<Fact, { type: Type }> } = {
  claimed: { type: 'claimed', ...held, delivery: 3, idempotent: false, to: 2 },
  begun: { type: 'begun', ...held, attempt: 2, to: 3 },
  effect_committed: {
    type: 'effect_committed',
    ...held,
    key: 'ledger-row',
    descriptor: DIGEST,
    result: sha256Hex('result'),
    to: 3,
  },
  step_begun: { type: 'step_begun', ...held, key: 'charge', descriptor: DIGEST, idempotent: true, to: 3 },
  step_done: { type: 'step_done', ...held, key: 'charge', result: DIGEST, to: 3 },
  settled: {
    type: 'settled',
    ...held,
    outcome: 'retryable',
    digest: DIGEST,
    delayMs: 500,
    jitterMs: 7,
    until: null,
    neverCalled: false,
    byUpgrade: false,
    cause: 'retry_scheduled',
    startAt: 2_507,
    to: 1,
  },
  retry_decided: {
    type: 'retry_decided',
    ...unheld,
    token: 12,
    cause: 'policy_retry',
    startAt: 2_500,
    to: 1,
  },
  lapsed: {
    type: 'lapsed',
    tick: 32_000,
    expiresAt: 32_000,
    token: 12,
    by: 'lease',
    at: 32_000,
    cause: 'lease_expired',
    to: 8,
  },
  cancel: { type: 'cancel', ...unheld, actor: 'ada', reason: DIGEST, to: 7 },
  reconciled: {
    type: 'reconciled',
    ...unheld,
    token: 12,
    decision: 'retry',
    by: 'person',
    actor: 'ada',
    reason: null,
    steps: [
      { key: 'charge', tookPlace: true, result: DIGEST },
      { key: 'mail', tookPlace: false, result: null },
    ],
    cause: 'reconciled',
    startAt: 2_000,
    to: 0,
  },
  promoted: { type: 'promoted', ...unheld, actor: 'ada', reason: null, to: 1 },
  testimony: {
    type: 'testimony',
    ...unheld,
    worker: 'w-1',
    token: 12,
    outcome: 'succeeded',
    digest: DIGEST,
    to: 8,
  },
  clock_corrected: {
    type: 'clock_corrected',
    tick: 1_500,
    expiresAt: 31_500,
    from: 2_000,
    startAt: 1_000,
    to: 3,
  },
};

const tick = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, limits.tickMax, 2 ** 32 - 1, 2 ** 32));
const granted = tick.map((value) => Math.max(1, value));
const digest = fc.string({ maxLength: 5 }).map(sha256Hex);
const orNull = <Value>(inner: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.option(inner, { nil: null });

function name(bytesMax: number): fc.Arbitrary<string> {
  return fc
    .oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
      fc.constantFrom('x'.repeat(bytesMax), '\ufeffbom', '😀'.repeat(bytesMax / 4)),
    )
    .filter((value) => nameProblem(value, bytesMax) === null);
}

const worker = name(limits.workerBytesMax);
const actor = name(limits.actorBytesMax);
const key = name(limits.effectKeyBytesMax);
const state = fc.constantFrom<State[]>(0, 1, 2, 3, 4, 6, 7, 8, 9);
const recorded = { tick, expiresAt: orNull(tick), to: state };
const holder = { ...recorded, worker, token: granted };
const cause = fc.constantFrom(...CAUSES);
const outcome = fc.constantFrom(...OUTCOMES);
const startAt = orNull(tick);
const verdict: fc.Arbitrary<StepVerdict> = fc.record({
  key,
  tookPlace: fc.boolean(),
  result: orNull(digest),
});
const of = <Type extends Fact['type']>(type: Type): { type: fc.Arbitrary<Type> } => ({
  type: fc.constant(type),
});

/** Any fact at all. */
export const facts: fc.Arbitrary<Fact> = fc.oneof<fc.Arbitrary<Fact>[]>(
  fc.record({
    ...of('claimed'),
    ...holder,
    delivery: fc.integer({ min: 1, max: limits.maxAttemptsMax + limits.deliveriesSpare }),
    idempotent: fc.boolean(),
  }),
  fc.record({ ...of('begun'), ...holder, attempt: fc.integer({ min: 1, max: limits.maxAttemptsMax }) }),
  fc.record({ ...of('effect_committed'), ...holder, key, descriptor: digest, result: digest }),
  fc.record({ ...of('step_begun'), ...holder, key, descriptor: digest, idempotent: fc.boolean() }),
  fc.record({ ...of('step_done'), ...holder, key, result: digest }),
  fc.record({
    ...of('settled'),
    ...holder,
    outcome,
    digest,
    delayMs: orNull(fc.integer({ min: 0, max: limits.backoffMsMax })),
    jitterMs: fc.integer({ min: 0, max: limits.jitterMsMax }),
    until: startAt,
    neverCalled: fc.boolean(),
    byUpgrade: fc.boolean(),
    cause,
    startAt,
  }),
  fc.record({ ...of('retry_decided'), ...recorded, token: granted, cause, startAt }),
  fc.record({
    ...of('lapsed'),
    ...recorded,
    token: tick,
    by: fc.constantFrom('deadline' as const, 'lease' as const),
    at: tick,
    cause,
  }),
  fc.record({ ...of('cancel'), ...recorded, actor, reason: orNull(digest) }),
  fc.record({
    ...of('reconciled'),
    ...recorded,
    token: granted,
    decision: fc.constantFrom(...DECIDED),
    by: fc.constantFrom(...DECIDED_BY),
    actor,
    reason: orNull(digest),
    steps: fc.array(verdict, { maxLength: 4 }),
    cause,
    startAt,
  }),
  fc.record({ ...of('promoted'), ...recorded, actor, reason: orNull(digest) }),
  fc.record({ ...of('testimony'), ...recorded, worker, token: granted, outcome, digest }),
  fc.record({ ...of('clock_corrected'), ...recorded, from: tick, startAt: tick }),
);
