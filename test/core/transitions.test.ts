/** The table of states tells the truth: the moves it lists are exactly those that random lives of a job go through. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { STATE, STATE_NAMES, STATE_TABLE, type StateName } from '../../src/core/states.ts';
import { live, moves, submissions } from './exploring.ts';

/** `PENDING to LEASED` for every recorded fact that left a state for another. */
function observed(): ReadonlySet<string> {
  const seen = new Set<string>();
  const lives = fc.sample(fc.tuple(submissions, moves), { numRuns: 3_000, seed: 20_260_101 });
  for (const [submission, moved] of lives) {
    for (const { before, decision } of live(submission, moved)) {
      let state = before.state;
      for (const { to } of decision.facts) {
        if (to !== state) seen.add(`${STATE_NAMES[state]} to ${STATE_NAMES[to]}`);
        state = to;
      }
    }
  }
  return seen;
}

const SEEN = observed();
const LISTED = STATE_TABLE.flatMap((row) => row.leaves.map((to) => `${row.name} to ${STATE_NAMES[to]}`));

test('no move is made that the table of states does not list', () => {
  expect([...SEEN].filter((move) => !LISTED.includes(move))).toEqual([]);
});

test('no move is listed that no job ever makes', () => {
  expect(LISTED.filter((move) => !SEEN.has(move))).toEqual([]);
});

test('from where a job starts every state is reached but the one that is folded away', () => {
  const reached = new Set<StateName>(['PENDING', 'SCHEDULED']);
  for (const from of reached) {
    for (const to of STATE_TABLE[STATE[from]]?.leaves ?? []) reached.add(STATE_NAMES[to] ?? 'PENDING');
  }
  expect(STATE_NAMES.filter((name) => !reached.has(name))).toEqual(['RETRYABLE_FAILURE']);
});

test('a terminal state is left by nothing, and every other that is stored by something', () => {
  for (const row of STATE_TABLE) {
    const folded = row.code === STATE.RETRYABLE_FAILURE;
    expect([row.name, row.leaves.length === 0]).toEqual([row.name, row.terminal || folded]);
  }
});
