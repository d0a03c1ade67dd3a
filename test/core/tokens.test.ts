/** Tokens first: only the last token settles, only while its lease lasts, and a report that was accepted counts once. */
import { expect, test } from 'vitest';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  cancel,
  claim,
  expectDuplicate,
  expectMove,
  expectRefusal,
  LEASE_END,
  leased,
  lost,
  running,
  settle,
  T0,
  TOKEN,
} from '../support/job-builders.ts';

test('the same settlement again is a duplicate, and another one does not replace it', () => {
  const settled = accept(running(), settle('retryable')).job;
  expectDuplicate(settled, settle('retryable'), T0 + 1);
  expectDuplicate(settled, settle('retryable', { delayMs: 99 }), T0 + 1);
  expectRefusal(settled, settle('succeeded'), 'already_settled', T0 + 1);
  expectRefusal(settled, settle('retryable', { digest: 'f'.repeat(64) }), 'already_settled', T0 + 1);
});

test('a lost answer can be asked for again long after the end of the job', () => {
  const settled = accept(running(), settle('succeeded')).job;
  expectDuplicate(settled, settle('succeeded'), T0 + 1_000_000);
});

test('a token that is not the last one settles nothing, whatever the state is', () => {
  expectRefusal(running(), settle('succeeded', { token: TOKEN + 1 }), 'stale_token');
  const again = acceptAll(running(), [settle('interrupted'), claim({ token: TOKEN + 2 }), begin(TOKEN + 2)]);
  const zombie = settle('succeeded');
  expect(expectRefusal(again, zombie, 'stale_token').testimony).toBe(true);
  expect(
    expectRefusal(accept(leased(), cancel()).job, settle('succeeded', { token: 3 }), 'stale_token').testimony,
  ).toBe(true);
});

test('a report under a token that was never granted is no testimony', () => {
  for (const token of [0, -1, 1.5, Number.NaN, TOKEN + 1, Number.POSITIVE_INFINITY]) {
    expect(expectRefusal(running(), settle('succeeded', { token }), 'stale_token').testimony).toBe(false);
    expect(expectRefusal(lost(), settle('succeeded', { token }), 'stale_token', LEASE_END).testimony).toBe(
      false,
    );
  }
});

test('on the tick its lease ends a settlement is too late, and one tick earlier it is not', () => {
  expectMove(running(), settle('succeeded'), STATE.SUCCEEDED, 'reported', LEASE_END - 1);
  const { job, testimony } = expectRefusal(running(), settle('succeeded'), 'lease_lost', LEASE_END);
  expect([job.state, job.cause, testimony]).toEqual([STATE.PENDING, 'lease_expired', true]);
});

test('on the tick of the deadline a settlement is too late, whatever is left of the lease', () => {
  const job = running({ deadline: T0 + 50 });
  expectMove(job, settle('succeeded'), STATE.SUCCEEDED, 'reported', T0 + 49);
  const refusal = expectRefusal(job, settle('succeeded'), 'lease_lost', T0 + 50);
  expect(refusal.job).toMatchObject({ state: STATE.DEAD_LETTERED, outcomeUnknown: true });
  expect(refusal.testimony).toBe(true);
});

test('a settlement refused for its content is no testimony: its holder holds the job still', () => {
  expect(expectRefusal(running(), settle('snoozed'), 'tick_overflow').testimony).toBe(false);
});
