/** Refusals come in the order of their table: of several that apply, the earliest is answered, whatever the command. */
import { describe, expect, test } from 'vitest';
import type { Command, Context } from '../../src/core/commands.ts';
import { decide } from '../../src/core/decide.ts';
import type { Job } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { limits } from '../../src/core/limits.ts';
import { decideRedrive } from '../../src/core/redrive.ts';
import { ADMISSION_REFUSAL_TABLE, REFUSAL_TABLE, type Refusal } from '../../src/core/refusal.ts';
import {
  accept,
  acceptAll,
  begin,
  beginStep,
  cancel,
  claim,
  commitEffect,
  contextOf,
  doubtful,
  extend,
  finishStep,
  LEASE_END,
  leased,
  lost,
  promote,
  reconcile,
  running,
  settle,
  T0,
  TOKEN,
  waiting,
} from '../support/job-builders.ts';
import { obstacles } from './obstacles.ts';

const ORDER: readonly Refusal[] = REFUSAL_TABLE.map((row) => row.code);

const steps = (job: Job) => acceptAll(job, [beginStep('mail', false), beginStep('sms', true)]);
const full = acceptAll(
  running(),
  Array.from({ length: limits.openStepsMax }, (_, index) => beginStep(`step-${index}`, true)),
);
const policy = { requiresEffect: 'charge', deadline: T0 + 1_000 };
const JOBS: readonly Job[] = [
  waiting(policy),
  waiting({ startAt: T0 + 500 }),
  waiting({ internal: { purpose: 'reconcile', parentId: 1, parentToken: 1 } }),
  leased(policy),
  running(),
  running(policy),
  steps(running(policy)),
  full,
  lost(),
  lost({ ...policy, maxAttempts: 1 }),
  doubtful({ requiresEffect: 'charge' }),
  accept(steps(running(policy)), settle('uncertain', { delayMs: 1_000 })).job,
  accept(running(), settle('retryable', { delayMs: 50 })).job,
  accept(running(), settle('interrupted')).job,
  accept(running(), settle('succeeded')).job,
  accept(running(), settle('permanent')).job,
  accept(running(), cancel()).job,
  accept(leased(), cancel()).job,
];
const TOKENS = [0, TOKEN - 1, TOKEN, TOKEN + 1];
const TICKS = [T0, T0 + 99, LEASE_END, T0 + 500, T0 + 1_000];

const flags = [true, false];
const CLAIMERS = [null, { revision: 1, idempotent: true }, { revision: 2, idempotent: true }];
const EFFECTS = [
  null,
  { descriptor: 'd'.repeat(64), result: null },
  { descriptor: 'f'.repeat(64), result: null },
];
const CLAIM_CONTEXTS = flags.flatMap((laneHead) =>
  flags.flatMap((queuePaused) => CLAIMERS.map((claimer) => contextOf({ laneHead, queuePaused, claimer }))),
);
const MARK_CONTEXTS = EFFECTS.map((effect) => contextOf({ effect }));
const PLAIN = [contextOf()];
const VERSIONS = [null, 3, 5];
const VERDICTS = [[], ['mail'], ['mail', 'mail'], ['fax'], ['sms']].map((keys) =>
  keys.map((key) => ({ key, tookPlace: false, result: null })),
);

const commandsFor = (token: number): readonly (readonly [Command, readonly Context[]])[] => [
  ...[0, 100].map((leaseMs) => [claim({ token, leaseMs }), CLAIM_CONTEXTS] as const),
  [begin(token), CLAIM_CONTEXTS],
  ...[0, 100].map((extendMs) => [extend(extendMs, token), PLAIN] as const),
  ...(['succeeded', 'snoozed', 'interrupted', 'permanent'] as const).flatMap((outcome) =>
    [-1, 0].map((jitterMs) => [settle(outcome, { token, jitterMs, until: T0 + 200 }), PLAIN] as const),
  ),
  ...['charge', 'mail', 'sms'].flatMap((key) => [
    [commitEffect(key, { token }), MARK_CONTEXTS] as const,
    [finishStep(key, { token }), MARK_CONTEXTS] as const,
    ...flags.map((idempotent) => [beginStep(key, idempotent, { token }), MARK_CONTEXTS] as const),
  ]),
  ...VERSIONS.flatMap((version) => [
    [cancel({ version }), PLAIN] as const,
    [promote({ version }), PLAIN] as const,
    ...(['succeeded', 'failed', 'retry'] as const).flatMap((decision) =>
      VERDICTS.map((verdicts) => [reconcile(decision, { token, version, steps: verdicts }), PLAIN] as const),
    ),
  ]),
];

describe('of a command', () => {
  test('the earliest obstacle is answered, over every pair that can stand in one way, and none is none', () => {
    const pairs = new Set<string>();
    const wrong: unknown[] = [];
    const answered = new Set<Refusal>();
    for (const job of JOBS) {
      for (const now of TICKS) {
        const lapsed = lapse(job, now).job;
        for (const [command, contexts] of TOKENS.flatMap(commandsFor)) {
          for (const context of contexts) {
            const found = obstacles(lapsed, command, context, now);
            const inOrder = ORDER.filter((code) => found.has(code));
            const decision = decide(job, command, context, now);
            const answer = decision.accepted ? null : decision.refused;
            // The settlement that was accepted is known again whatever else stands in its way.
            const again =
              command.type === 'settle' &&
              lapsed.answered?.token === command.token &&
              lapsed.answered.outcome === command.outcome &&
              inOrder[0] === 'already_settled';
            const expected = again ? null : (inOrder[0] ?? null);
            if (answer !== expected) wrong.push({ job, command, context, now, answer, inOrder });
            if (answer !== null) answered.add(answer);
            for (const later of inOrder.slice(1)) pairs.add(`${inOrder[0]} before ${later}`);
          }
        }
      }
    }
    expect(wrong).toEqual([]);
    const elsewhere: readonly Refusal[] = ['unknown_job', 'already_redriven'];
    expect(ORDER.filter((code) => !answered.has(code))).toEqual(elsewhere);
    expect(pairs.size).toBeGreaterThan(70);
    expect(pairs).toContain('deadline_passed before effect_conflict');
    expect(pairs).toContain('effect_not_committed before tick_overflow');
    expect(pairs).toContain('revision_unknown before tick_overflow');
  });
});

describe('of a redrive', () => {
  test('the earliest obstacle is answered, those of the old job before those of admission', () => {
    const failed = accept(running(), settle('permanent')).job;
    const answers = new Set<string>();
    for (const version of [null, failed.version - 1, failed.version]) {
      for (const job of [failed, running(), accept(running(), settle('succeeded')).job]) {
        for (const deadline of [null, T0 + 7, T0 + 7.5, T0 + 8, T0 + 8.5]) {
          for (const redrivenTo of [null, 9]) {
            for (const unresolved of [0, 4]) {
              const expected = [
                version !== null && version !== job.version ? 'version_mismatch' : null,
                job !== failed ? 'wrong_state' : null,
                deadline !== null && deadline <= T0 + 7 ? 'deadline_passed' : null,
                redrivenTo !== null ? 'already_redriven' : null,
                deadline !== null && !Number.isInteger(deadline) ? 'tick_overflow' : null,
                unresolved >= 4 ? 'capacity_exceeded' : null,
              ].find((code) => code !== null);
              const context = { now: T0 + 7, unresolved, maxUnresolved: 4, freshLineage: 'l', redrivenTo };
              const compensation = 'none';
              const decision = decideRedrive(job, { deadline, version }, { ...context, compensation });
              const answer = 'refused' in decision ? decision.refused : undefined;
              expect([version, deadline, redrivenTo, unresolved, answer]).toEqual([
                version,
                deadline,
                redrivenTo,
                unresolved,
                expected,
              ]);
              answers.add(`${answer}`);
            }
          }
        }
      }
    }
    expect(answers.size).toBe(7);
  });
});

test('no code stands twice in a table, and each says what it means and what to do next', () => {
  for (const table of [REFUSAL_TABLE, ADMISSION_REFUSAL_TABLE]) {
    const codes: readonly string[] = table.map((row) => row.code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const row of table) {
      for (const sentence of [row.meaning, row.next]) expect(sentence).toMatch(/^[A-Z].+\.$/);
    }
  }
});
