/** Limits: the relations that the bounds must keep to one another hold, and each is noticed when it does not. */
import { expect, test } from 'vitest';
import { brokenLimitRelations, limits } from '../../src/core/limits.ts';

type Bounds = Parameters<typeof brokenLimitRelations>[0];

/** One change that breaks exactly the relation it is listed under, and where equality is allowed, one that does not. */
const BREAKS: readonly (readonly [relation: string, broken: Partial<Bounds>, kept?: Partial<Bounds>])[] = [
  ['internal jobs outrank every user priority', { priorityInternal: 1_000 }],
  ['the default priority 0 is allowed', { priorityMin: 1 }, { priorityMin: 0 }],
  ['the default priority 0 is allowed', { priorityMax: -1 }, { priorityMax: 0 }],
  ['revisions fit one byte', { revisionMin: 0 }],
  ['revisions fit one byte', { revisionMax: 256 }],
  ['the default attempts are allowed', { maxAttemptsMin: 6 }, { maxAttemptsMin: 5 }],
  ['the default attempts are allowed', { maxAttemptsDefault: 10_001 }, { maxAttemptsDefault: 10_000 }],
  ['internal attempts are allowed', { internalAttemptsMax: 10_001 }, { internalAttemptsMax: 10_000 }],
  ['deliveries fit four bytes', { deliveriesSpare: 2 ** 32 - 10_000 }, { deliveriesSpare: 2 ** 32 - 10_001 }],
  [
    'the default backoff is allowed and ordered',
    { backoffBaseMsDefault: 300_001 },
    { backoffBaseMsDefault: 300_000 },
  ],
  ['the default backoff is allowed and ordered', { backoffMsMax: 299_999 }, { backoffMsMax: 300_000 }],
  ['the default lease is allowed', { leaseMsMin: 30_001 }, { leaseMsMin: 30_000 }],
  ['the default lease is allowed', { leaseMsMax: 29_999 }, { leaseMsMax: 30_000 }],
  ['a clock is distrusted sooner than a default lease ends', { clockToleranceMs: 30_000 }],
  ['a worker is called dead only after its default lease ended', { workerAliveMs: 30_000 }],
  ['a decision about every open step fits one entry', { openStepsMax: 442 }, { openStepsMax: 441 }],
  ['an entry fits a bundle', { entryBytesMax: 268_435_456 }, { entryBytesMax: 268_435_455 }],
  [
    'a payload fits a bundle even when every byte is escaped',
    { payloadBytesMax: 268_435_456 / 6 },
    { payloadBytesMax: 44_739_242 },
  ],
  ['the inline ledger holds at least one ordinary entry', { ledgerInlineMax: 511 }, { ledgerInlineMax: 512 }],
  [
    'a restore leaves room for ids and tokens',
    { restoreGap: 9_007_199_254_741 },
    { restoreGap: 9_007_199_254_740 },
  ],
  [
    'noise leaves room for the word that could decide',
    { testimonyIndefiniteMax: 32 },
    { testimonyIndefiniteMax: 31 },
  ],
  [
    'the default time to keep keys is allowed',
    { keepKeysForMsMax: 2_591_999_999 },
    { keepKeysForMsMax: 2_592_000_000 },
  ],
  ['a default page is allowed', { findPageDefault: 1_001 }, { findPageDefault: 1_000 }],
  [
    'keys outlive the default retention of what succeeded',
    { keepKeysForMsDefault: 604_799_999 },
    { keepKeysForMsDefault: 604_800_000 },
  ],
];

test('every relation between the bounds holds', () => {
  expect(brokenLimitRelations(limits)).toEqual([]);
});

const CASES = BREAKS.map(([relation, broken, kept = {}]) => ({ relation, broken, kept }));

test.each(CASES)(
  'a bound that breaks "$relation" is noticed, and only that is',
  ({ relation, broken, kept }) => {
    expect(brokenLimitRelations({ ...limits, ...broken })).toEqual([relation]);
    expect(brokenLimitRelations({ ...limits, ...kept })).toEqual([]);
  },
);

test('no relation is left unbroken by these tests', () => {
  const nothing = { ...limits, ...Object.fromEntries(Object.keys(limits).map((name) => [name, Number.NaN])) };
  expect(new Set(brokenLimitRelations(nothing))).toEqual(new Set(BREAKS.map(([relation]) => relation)));
});

test('every bound is a whole number, and none but a priority is negative', () => {
  for (const [name, bound] of Object.entries(limits)) {
    expect([name, Number.isSafeInteger(bound)]).toEqual([name, true]);
    expect([name, bound >= 0 || name === 'priorityMin']).toEqual([name, true]);
  }
});
