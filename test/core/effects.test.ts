/** Effects and steps: a key belongs to one content, a mark is made once, and an open step is never forgotten. */
import { describe, expect, test } from 'vitest';
import { hasUnsafeOpenStep } from '../../src/core/job.ts';
import { limits } from '../../src/core/limits.ts';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  beginStep,
  claim,
  commitEffect,
  contextOf,
  expectDuplicate,
  expectMove,
  expectRefusal,
  finishStep,
  LEASE_END,
  leased,
  lost,
  running,
  settle,
  T0,
  TOKEN,
} from '../support/job-builders.ts';

const SAME = contextOf({ effect: { descriptor: 'd'.repeat(64), result: 'e'.repeat(64) } });
const OTHER = contextOf({ effect: { descriptor: 'f'.repeat(64), result: null } });
const HELD = { tick: T0, expiresAt: LEASE_END, worker: 'worker-1', token: TOKEN, to: STATE.RUNNING } as const;

describe('commit_effect', () => {
  test('an effect leaves its whole mark in the chain and the job running', () => {
    const { job, facts } = expectMove(running(), commitEffect('charge'), STATE.RUNNING, null);
    expect(job).toEqual({ ...running(), version: 3, marked: true });
    const { key, descriptor, result } = commitEffect('charge');
    expect(facts).toEqual([{ type: 'effect_committed', ...HELD, key, descriptor, result }]);
  });

  test('only the required effect lets a job that requires one succeed', () => {
    const job = running({ requiresEffect: 'charge' });
    expectRefusal(job, settle('succeeded'), 'effect_not_committed');
    const other = accept(job, commitEffect('mail')).job;
    expectRefusal(other, settle('succeeded'), 'effect_not_committed');
    const committed = acceptAll(job, [commitEffect('charge'), commitEffect('mail')]);
    expect(committed.requiredEffectCommitted).toBe(true);
    expectMove(committed, settle('succeeded'), STATE.SUCCEEDED, 'reported');
  });

  test('an effect that is marked is not committed again: equal content is a duplicate, other content a conflict', () => {
    expectDuplicate(running(), commitEffect('charge'), T0, SAME);
    expectRefusal(running(), commitEffect('charge'), 'effect_conflict', T0, OTHER);
  });

  test('a local effect does not take the key of a step that is open', () => {
    const job = accept(running(), beginStep('charge', true)).job;
    expectRefusal(job, commitEffect('charge'), 'effect_conflict', T0, SAME);
    expectRefusal(job, commitEffect('charge'), 'effect_conflict');
  });

  test('nothing is marked before the handler began, after the lease ended, or under a stale token', () => {
    for (const command of [commitEffect('charge'), beginStep('charge', true), finishStep('charge')]) {
      expectRefusal(leased(), command, 'wrong_state');
      expectRefusal(lost(), command, 'lease_lost', LEASE_END);
      expectRefusal(running({ idempotent: false }), command, 'lease_lost', LEASE_END);
      expectRefusal(running(), { ...command, token: TOKEN - 1 }, 'stale_token');
      expectRefusal(accept(running(), settle('permanent')).job, command, 'already_settled');
    }
  });
});

describe('steps', () => {
  test('a step is open from its begun mark to its done mark', () => {
    const begun = expectMove(running(), beginStep('mail', false), STATE.RUNNING, null);
    expect(begun.job.openSteps).toEqual([{ key: 'mail', idempotent: false }]);
    const { key, descriptor } = beginStep('mail', false);
    expect(begun.facts).toEqual([{ type: 'step_begun', ...HELD, key, descriptor, idempotent: false }]);
    const done = expectMove(begun.job, finishStep('mail'), STATE.RUNNING, null);
    expect(done.job).toEqual({ ...running(), version: 4, marked: true });
    expect(done.facts).toEqual([{ type: 'step_done', ...HELD, key, result: finishStep('mail').result }]);
  });

  test('finishing one step leaves the others open, and what is not open is not finished', () => {
    const job = acceptAll(running(), [beginStep('mail', false), beginStep('sms', true)]);
    const done = accept(job, finishStep('mail')).job;
    expect(done.openSteps).toEqual([{ key: 'sms', idempotent: true }]);
    expectRefusal(done, finishStep('mail'), 'effect_conflict');
  });

  test('a finish whose answer was lost can be asked again, and only with the same result', () => {
    const job = accept(accept(running(), beginStep('mail', false)).job, finishStep('mail')).job;
    const marked = (result: string) => contextOf({ effect: { descriptor: 'd'.repeat(64), result } });
    expectDuplicate(job, finishStep('mail'), T0, marked(finishStep('mail').result));
    expectRefusal(job, finishStep('mail'), 'effect_conflict', T0, marked('9'.repeat(64)));
  });

  test('a step that may not run twice is not begun again while it is open, whatever it is called now', () => {
    const unsafe = accept(running(), beginStep('mail', false)).job;
    expectRefusal(unsafe, beginStep('mail', true), 'step_open', T0, SAME);
    expectRefusal(unsafe, beginStep('mail', false), 'step_open', T0, SAME);
    const safe = accept(running(), beginStep('mail', true)).job;
    expectRefusal(safe, beginStep('mail', false), 'step_open', T0, SAME);
  });

  test('an idempotent step is begun again after a redelivery, and stays one open step', () => {
    const job = accept(running(), beginStep('mail', true)).job;
    const { job: again } = accept(job, beginStep('mail', true), T0, SAME);
    expect(again.openSteps).toEqual([{ key: 'mail', idempotent: true }]);
  });

  test('a step that is done is a duplicate, and its key is taken for other content', () => {
    expectDuplicate(running(), beginStep('mail', false), T0, SAME);
    expectRefusal(running(), beginStep('mail', false), 'effect_conflict', T0, OTHER);
  });

  test('open steps are bounded, and one that is open already does not count against the bound', () => {
    const keys = Array.from({ length: limits.openStepsMax }, (_, index) => `step-${index}`);
    const full = acceptAll(
      running(),
      keys.map((key) => beginStep(key, true)),
    );
    expect(full.openSteps).toHaveLength(limits.openStepsMax);
    expectRefusal(full, beginStep('one-more', true), 'step_open');
    expectMove(full, beginStep('step-0', true), STATE.RUNNING, null);
    const room = accept(full, finishStep('step-9')).job;
    expectMove(room, beginStep('one-more', true), STATE.RUNNING, null);
  });

  test('an open step survives a lost attempt, and only an unsafe one is called unsafe', () => {
    const open = acceptAll(running(), [beginStep('mail', true)]);
    expect(hasUnsafeOpenStep(open)).toBe(false);
    const interrupted = accept(open, settle('interrupted')).job;
    expect(interrupted.openSteps).toEqual(open.openSteps);
    expect(hasUnsafeOpenStep(acceptAll(open, [beginStep('sms', false)]))).toBe(true);
  });
});

describe('a handler that left a mark', () => {
  test('was called, whatever is said later: its attempt is neither refused nor given back as never called', () => {
    const job = accept(running(), commitEffect('charge')).job;
    expectRefusal(job, settle('refused'), 'wrong_state');
    expectRefusal(job, settle('interrupted', { neverCalled: true }), 'wrong_state');
    expect(accept(job, settle('interrupted')).job.runs).toBe(1);
  });

  test('left it in its own delivery only', () => {
    const again = acceptAll(accept(running(), commitEffect('charge')).job, [settle('interrupted')]);
    expect(again.marked).toBe(true);
    expect(accept(again, claim({ token: TOKEN + 1 }), T0, contextOf({ laneHead: true })).job.marked).toBe(
      false,
    );
  });
});
