import { describe, expect, test } from 'vitest';
import type { Fact } from '../../src/core/facts.ts';
import type { Submission } from '../../src/core/job.ts';
import { limits } from '../../src/core/limits.ts';
import { replay, sha256Hex } from '../../src/evidence/index.ts';
import { submissionOf } from './histories.ts';

const DIGEST = sha256Hex('report');
const held = { expiresAt: 31_000, worker: 'w-1', token: 12 } as const;

type Of<Type extends Fact['type']> = Extract<Fact, { type: Type }>;
const claimed = (changes: Partial<Of<'claimed'>> = {}): Fact => ({
  type: 'claimed',
  tick: 1_000,
  ...held,
  delivery: 1,
  idempotent: true,
  to: 2,
  ...changes,
});
const begun = (changes: Partial<Of<'begun'>> = {}): Fact => ({
  type: 'begun',
  tick: 1_000,
  ...held,
  attempt: 1,
  to: 3,
  ...changes,
});
const settled = (changes: Partial<Of<'settled'>> = {}): Fact => ({
  type: 'settled',
  tick: 2_000,
  ...held,
  outcome: 'succeeded',
  digest: DIGEST,
  delayMs: null,
  jitterMs: 0,
  until: null,
  neverCalled: false,
  byUpgrade: false,
  cause: 'reported',
  startAt: null,
  to: 4,
  ...changes,
});
const lost = (changes: Partial<Of<'lapsed'>> = {}): Fact => ({
  type: 'lapsed',
  tick: 40_000,
  expiresAt: 31_000,
  token: 12,
  by: 'lease',
  at: 31_000,
  cause: 'lease_expired',
  to: 8,
  ...changes,
});
const testimony = (changes: Partial<Of<'testimony'>> = {}): Fact => ({
  type: 'testimony',
  tick: 41_000,
  expiresAt: null,
  worker: 'w-1',
  token: 12,
  outcome: 'retryable',
  digest: DIGEST,
  to: 8,
  ...changes,
});
const decided = (changes: Partial<Of<'reconciled'>> = {}): Fact => ({
  type: 'reconciled',
  tick: 42_000,
  expiresAt: null,
  token: 12,
  decision: 'succeeded',
  by: 'person',
  actor: 'ada',
  reason: null,
  steps: [],
  cause: 'reconciled',
  startAt: null,
  to: 4,
  ...changes,
});
const effect = (changes: Partial<Of<'effect_committed'>> = {}): Fact => ({
  type: 'effect_committed',
  tick: 1_500,
  ...held,
  key: 'row',
  descriptor: DIGEST,
  result: DIGEST,
  to: 3,
  ...changes,
});
const stepBegun = (changes: Partial<Of<'step_begun'>> = {}): Fact => ({
  type: 'step_begun',
  tick: 1_500,
  ...held,
  key: 'charge',
  descriptor: DIGEST,
  idempotent: true,
  to: 3,
  ...changes,
});
const stepDone = (changes: Partial<Of<'step_done'>> = {}): Fact => ({
  type: 'step_done',
  tick: 1_500,
  ...held,
  key: 'charge',
  result: DIGEST,
  to: 3,
  ...changes,
});
const corrected = (changes: Partial<Of<'clock_corrected'>> = {}): Fact => ({
  type: 'clock_corrected',
  tick: 500,
  expiresAt: 30_500,
  from: 1_000,
  startAt: 1_000,
  to: 3,
  ...changes,
});
const uncertain = (changes: Partial<Of<'settled'>> = {}): Fact =>
  settled({ outcome: 'uncertain', to: 8, ...changes });
const retried = (changes: Partial<Of<'retry_decided'>> = {}): Fact => ({
  type: 'retry_decided',
  tick: 2_000,
  expiresAt: null,
  token: 12,
  cause: 'policy_retry',
  startAt: 2_010,
  to: 1,
  ...changes,
});
const cancelled: Fact = { type: 'cancel', tick: 2_000, expiresAt: null, actor: 'ada', reason: null, to: 7 };

function outcome(facts: readonly Fact[], changes: Partial<Submission> = {}): string {
  const replayed = replay(7, submissionOf(changes), facts);
  return replayed.ok ? `state ${replayed.job.state}` : `${replayed.at} ${replayed.fault}: ${replayed.detail}`;
}

const running = [claimed(), begun()];
const unsafe = { idempotent: false } as const;
const unsafeRunning = [claimed({ idempotent: false }), begun()];
const doubt = [...unsafeRunning, lost()];

describe('a history that decide can have made is replayed:', () => {
  test.each<[string, readonly Fact[], string, Partial<Submission>?]>([
    ['no facts at all', [], 'state 0'],
    [
      'a success under a lease that heartbeats moved',
      [...running, settled({ tick: 90_000, expiresAt: 95_000 })],
      'state 4',
    ],
    [
      'a success under a lease that a heartbeat shortened',
      [...running, settled({ expiresAt: 2_001 })],
      'state 4',
    ],
    ['a contract that its claimer made unsafe', [...unsafeRunning, lost()], 'state 8'],
    [
      'a lease that ran out later than it was given',
      [...unsafeRunning, lost({ tick: 99_000, expiresAt: 95_000, at: 95_000 })],
      'state 8',
    ],
    ['an uncertain attempt and the policy behind it', [...running, uncertain(), retried()], 'state 1'],
    ['a testimony that does not count', [...doubt, testimony()], 'state 8', unsafe],
    [
      'a late report that counts',
      [
        ...doubt,
        testimony({ outcome: 'succeeded' }),
        decided({ tick: 41_000, by: 'late_report', actor: 'w-1', reason: DIGEST, cause: 'late_report' }),
      ],
      'state 4',
      unsafe,
    ],
    ['a decision after a testimony', [...doubt, testimony(), decided()], 'state 4', unsafe],
    [
      'a lapse and a claim at the same tick',
      [...running, lost({ to: 0 }), claimed({ tick: 40_000, expiresAt: 41_000, token: 13, delivery: 2 })],
      'state 2',
    ],
    ['a clock followed back under a lease', [...running, corrected()], 'state 3'],
    [
      'a clock followed back under a lease that was already short',
      [...running, corrected({ expiresAt: 501 })],
      'state 3',
    ],
    [
      'a clock followed back and still behind the lease',
      [
        ...running,
        settled({
          tick: 90_000,
          outcome: 'snoozed',
          until: 90_001,
          cause: 'snoozed',
          startAt: 90_001,
          to: 1,
          expiresAt: 91_000,
        }),
        { ...corrected({ tick: 50_000, expiresAt: null, from: 90_000, startAt: 90_001, to: 1 }) },
      ],
      'state 1',
    ],
    [
      'a clock followed back to where the lease is over',
      [
        ...unsafeRunning,
        stepBegun({ tick: 60_000, expiresAt: 61_000 }),
        corrected({ tick: 50_000, from: 60_000, expiresAt: 45_000 }),
        lost({ tick: 50_000, expiresAt: 45_000, at: 45_000 }),
      ],
      'state 8',
    ],
    [
      'the same effect in the next occurrence',
      [
        ...running,
        effect(),
        settled({ cause: 'recurrence', startAt: 2_050, to: 1 }),
        claimed({ tick: 3_000, expiresAt: 31_000, token: 13 }),
        begun({ tick: 3_000, token: 13 }),
        effect({ tick: 3_000, token: 13 }),
      ],
      'state 3',
      { recurrence: { intervalMs: 1_050, maxOccurrences: 3, maxCatchUp: 0 } },
    ],
    ['a safe step begun twice', [...running, stepBegun(), stepBegun(), stepDone()], 'state 3'],
  ])('%s', (_, facts, expected, changes) => {
    expect(outcome(facts, changes)).toBe(expected);
  });
});

describe('a history that no commands give is refused at its first fault:', () => {
  const longest = 1_000 + limits.leaseMsMax;
  test.each<[string, readonly Fact[], string, Partial<Submission>?]>([
    [
      'anything behind the end',
      [...running, settled(), cancelled],
      '3 after_terminal: cancel follows the end of the job at 2000',
    ],
    ['a second end', [cancelled, cancelled], '1 after_terminal: cancel follows the end of the job at 2000'],
    [
      'ticks that fall',
      [claimed(), begun({ tick: 999 })],
      '1 ticks_fall: tick 999 follows 1000 without a clock correction',
    ],
    [
      'a first tick before the admission',
      [claimed({ tick: 999 })],
      '0 ticks_fall: tick 999 follows 1000 without a clock correction',
    ],
    [
      'a token granted before',
      [...running, lost({ to: 0 }), claimed({ tick: 41_000, expiresAt: 42_000, delivery: 2 })],
      '3 token_not_rising: token 12 follows 12',
    ],
    [
      'a token behind the last',
      [...running, lost({ to: 0 }), claimed({ tick: 41_000, token: 11 })],
      '3 token_not_rising: token 11 follows 12',
    ],
    ['a begin without a claim', [begun()], '0 illegal_entry: core refuses it: stale_token'],
    [
      'a claim of what is held',
      [claimed(), claimed({ token: 13 })],
      '1 illegal_entry: core refuses it: wrong_state',
    ],
    [
      'a claim before the start',
      [claimed()],
      '0 illegal_entry: core refuses it: not_due',
      { startAt: 1_001 },
    ],
    [
      'a lease of no length',
      [claimed({ expiresAt: 1_000 })],
      '0 illegal_entry: core refuses it: tick_overflow',
    ],
    [
      'a lease without an end',
      [claimed({ expiresAt: null })],
      '0 illegal_entry: core refuses it: tick_overflow',
    ],
    [
      'a lease longer than any',
      [claimed({ expiresAt: longest + 1 })],
      '0 illegal_entry: core refuses it: tick_overflow',
    ],
    [
      'a settlement under another token',
      [...running, settled({ token: 11 })],
      '2 illegal_entry: core refuses it: stale_token',
    ],
    [
      'a settlement at the very end of the lease',
      [...running, settled({ expiresAt: 2_000 })],
      '2 illegal_entry: core refuses it: lease_lost',
    ],
    [
      'a settlement at the deadline',
      [...running, settled()],
      '2 illegal_entry: core refuses it: lease_lost',
      { deadline: 2_000 },
    ],
    [
      'a success without its effect',
      [...running, settled()],
      '2 illegal_entry: core refuses it: effect_not_committed',
      { requiresEffect: 'row' },
    ],
    [
      'an effect committed twice',
      [...running, effect(), effect()],
      '3 illegal_entry: it would have changed nothing',
    ],
    [
      'an effect committed again after a retry',
      [
        ...running,
        effect(),
        lost({ to: 0 }),
        claimed({ tick: 41_000, expiresAt: 42_000, token: 13, delivery: 2 }),
        begun({ tick: 41_000, expiresAt: 42_000, token: 13, attempt: 2 }),
        effect({ tick: 41_000, expiresAt: 42_000, token: 13 }),
      ],
      '6 illegal_entry: it would have changed nothing',
    ],
    [
      'a step begun after it was done',
      [...running, stepBegun(), stepDone(), stepBegun()],
      '4 illegal_entry: it would have changed nothing',
    ],
    [
      'a step done twice',
      [...running, stepBegun(), stepDone(), stepDone()],
      '4 illegal_entry: core refuses it: effect_conflict',
    ],
    [
      'a step run again that was decided to have taken place',
      [
        ...running,
        stepBegun({ idempotent: false }),
        uncertain(),
        decided({
          decision: 'retry',
          steps: [{ key: 'charge', tookPlace: true, result: null }],
          startAt: 42_000,
          to: 0,
        }),
        claimed({ tick: 43_000, expiresAt: 44_000, token: 13, delivery: 2 }),
        begun({ tick: 43_000, expiresAt: 44_000, token: 13, attempt: 2 }),
        stepBegun({ tick: 43_000, expiresAt: 44_000, token: 13 }),
      ],
      '7 illegal_entry: it would have changed nothing',
    ],
    [
      'a lapse that time does not bring',
      [...running, lost({ tick: 2_000, to: 0 })],
      '2 illegal_entry: nothing had lapsed',
    ],
    ['a lapse of what nobody holds', [lost({ expiresAt: null })], '0 illegal_entry: nothing had lapsed'],
    [
      'a correction of a clock that was right',
      [claimed(), corrected({ tick: 1_000 })],
      '1 illegal_entry: the clock had not run ahead',
    ],
    [
      'a decision to retry alone',
      [...running, retried()],
      '2 illegal_entry: a policy decides to retry only together with',
    ],
    [
      'a late report that no testimony brings',
      [...doubt, decided({ by: 'late_report' })],
      '3 illegal_entry: a late report counts only together with',
      unsafe,
    ],
    [
      'a decision about another attempt',
      [...doubt, decided({ token: 11 })],
      '3 illegal_entry: core refuses it: stale_token',
      unsafe,
    ],
    [
      'a retry that is not permitted',
      [...doubt, decided({ decision: 'retry', to: 0, startAt: 42_000 })],
      '3 illegal_entry: core refuses it: retry_not_permitted',
      unsafe,
    ],
    [
      'the same testimony again',
      [...doubt, testimony(), testimony()],
      '4 illegal_entry: it would have changed nothing',
      unsafe,
    ],
    [
      'a cancellation asked for again',
      [...running, { ...cancelled, expiresAt: 31_000, to: 3 }, { ...cancelled, expiresAt: 31_000, to: 3 }],
      '3 illegal_entry: it would have changed nothing',
    ],
    [
      'a lapse that was not recorded',
      [...running, claimed({ tick: 50_000, expiresAt: 51_000, token: 13 })],
      '2 entry_mismatch: type is "claimed", and replay gives "lapsed"',
    ],
    [
      'a testimony about an attempt that still ran',
      [...running, testimony({ tick: 2_000 })],
      '2 entry_mismatch: type is "testimony", and replay gives "settled"',
    ],
    [
      'another worker than the holder',
      [...running, settled({ worker: 'w-2' })],
      '2 entry_mismatch: worker is "w-2", and replay gives "w-1"',
    ],
    [
      'another state than follows',
      [...running, settled({ to: 6 })],
      '2 entry_mismatch: to is 6, and replay gives 4',
    ],
    [
      'another cause than applies',
      [...running, settled({ cause: 'reconciled' })],
      '2 entry_mismatch: cause is "reconciled", and replay gives "reported"',
    ],
    [
      'a later retry than the backoff',
      [...running, settled({ outcome: 'retryable', cause: 'retry_scheduled', startAt: 2_011, to: 1 })],
      '2 entry_mismatch: startAt is 2011, and replay gives 2010',
    ],
    [
      'a contract that the submission does not give',
      [claimed()],
      '0 entry_mismatch: idempotent is true, and replay gives false',
      unsafe,
    ],
    [
      'attempts that were not counted',
      [claimed(), begun({ attempt: 2 })],
      '1 entry_mismatch: attempt is 2, and replay gives 1',
    ],
    [
      'a policy that did not decide',
      [...running, uncertain()],
      '3 entry_mismatch: retry_decided should follow, and the history ends',
    ],
    [
      'a policy that decided something else',
      [...running, uncertain(), retried({ startAt: 2_011 })],
      '3 entry_mismatch: startAt is 2011, and replay gives 2010',
    ],
    [
      'a lapse at another time than the lease had',
      [...unsafeRunning, lost({ at: 30_000 })],
      '2 entry_mismatch: at is 30000, and replay gives 31000',
    ],
    [
      'a corrected clock that left a lease longer than any',
      [claimed(), corrected({ tick: 500, to: 2, expiresAt: 501 + limits.leaseMsMax })],
      `1 entry_mismatch: expiresAt is ${501 + limits.leaseMsMax}, and replay gives ${500 + limits.leaseMsMax}`,
    ],
    [
      'a corrected clock that came from elsewhere',
      [...running, corrected({ from: 1_001 })],
      '2 entry_mismatch: from is 1001, and replay gives 1000',
    ],
    [
      'a cancellation that forgets the lease',
      [...running, { ...cancelled, to: 3 }],
      '2 entry_mismatch: expiresAt is null, and replay gives 31000',
    ],
    [
      'verdicts that are not those that were given',
      [
        ...doubt,
        testimony({ outcome: 'succeeded' }),
        decided({
          tick: 41_000,
          by: 'late_report',
          actor: 'w-1',
          reason: DIGEST,
          cause: 'late_report',
          steps: [{ key: 'a', tookPlace: true, result: null }],
        }),
      ],
      '4 entry_mismatch: steps is [{"key":"a","tookPlace":true,"result":null}], and replay gives []',
      unsafe,
    ],
  ])('%s', (_, facts, expected, changes) => {
    expect(outcome(facts, changes)).toContain(expected);
  });
});

test('whoever follows along is told the job after every decision, and nothing behind the first fault', () => {
  const told: unknown[] = [];
  const facts = [...running, uncertain(), retried(), retried()];
  replay(7, submissionOf(), facts, (job, lastFact) => told.push([job.state, lastFact]));
  expect(told).toEqual([
    [2, 0],
    [3, 1],
    [1, 3],
  ]);
});

test('replaying changes neither the facts nor the submission', () => {
  const submission = Object.freeze(submissionOf());
  const facts = [...running, uncertain(), retried()].map((fact) => Object.freeze(fact));
  expect(replay(7, submission, Object.freeze(facts)).ok).toBe(true);
});
