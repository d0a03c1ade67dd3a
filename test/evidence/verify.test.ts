import { describe, expect, test } from 'vitest';
import type { Job } from '../../src/core/job.ts';
import { appendFacts, type Chain, type Evidence, newChain, verifyJob } from '../../src/evidence/index.ts';
import { SAMPLES } from './facts.ts';
import { PAYLOAD, play, retriedAndRunning, submissionOf } from './histories.ts';

const submission = submissionOf();
const { job, chain } = retriedAndRunning();
const evidence: Evidence = { job, payload: PAYLOAD, chain };

const codes = (given: Evidence): readonly string[] => verifyJob(given).faults.map(({ code }) => code);
const details = (given: Evidence): string => JSON.stringify(verifyJob(given).faults);

test('a job as stored verifies, with its open delivery counted and not under the root', () => {
  expect(verifyJob(evidence)).toEqual({
    ok: true,
    entries: chain.entries.length + 2,
    root: chain.root,
    faults: [],
  });
});

test('heartbeats move the lease and leave no fault', () => {
  const lease = job.lease && { ...job.lease, expiresAt: 99_999, lengthMs: 5 };
  expect(codes({ ...evidence, job: { ...job, lease } })).toEqual([]);
});

describe('a stored job that differs from its history in any field is found:', () => {
  const lies: { readonly [Field in keyof Omit<Job, 'id' | 'submission'>]: Job[Field] } = {
    state: 2,
    version: 1,
    tick: 1,
    idempotent: false,
    attempt: 9,
    delivery: 9,
    runs: 9,
    occurrence: 1,
    startAt: 1,
    slotAt: 1,
    token: 99,
    lease: null,
    answered: null,
    testified: { token: 1, outcome: 'succeeded', digest: 'x' },
    testimonies: 1,
    cancelRequested: true,
    outcomeUnknown: true,
    cause: 'reconciled',
    openSteps: [{ key: 'a', idempotent: true }],
    requiredEffectCommitted: true,
    marked: true,
    endedAt: 5,
  };
  test.each(Object.entries(lies))('%s', (field, lie) => {
    const verification = verifyJob({ ...evidence, job: { ...job, [field]: lie } });
    expect(verification.faults.map(({ code, at }) => [code, at])).toEqual([['state_mismatch', null]]);
    expect(verification.faults[0]?.detail).toContain(`${field} is `);
  });

  test('the token and the worker of the lease', () => {
    const lease = job.lease ?? { token: 0, worker: '', expiresAt: 0, lengthMs: 0 };
    expect(codes({ ...evidence, job: { ...job, lease: { ...lease, worker: 'thief' } } })).toEqual([
      'state_mismatch',
    ]);
    expect(codes({ ...evidence, job: { ...job, lease: { ...lease, token: 1 } } })).toEqual([
      'state_mismatch',
    ]);
  });

  test('what was answered', () => {
    const answered = job.answered && { ...job.answered, outcome: 'succeeded' as const };
    expect(codes({ ...evidence, job: { ...job, answered } })).toEqual(['state_mismatch']);
  });

  test('but not the order in which the fields of a record lie', () => {
    const answered = job.answered && {
      digest: job.answered.digest,
      outcome: job.answered.outcome,
      token: job.answered.token,
    };
    expect(codes({ ...evidence, job: { ...job, answered } })).toEqual([]);
  });
});

test('a submission changed anywhere no longer leads to the root', () => {
  for (const [field, value] of Object.entries(submission)) {
    const changed = typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : 'changed';
    const found = codes({ ...evidence, job: { ...job, submission: { ...submission, [field]: changed } } });
    expect([field, ...found]).toContain('root_mismatch');
  }
});

test('another payload is found by its digest, and by the descriptor', () => {
  expect(codes({ ...evidence, payload: '{}' })).toEqual(['payload_mismatch', 'descriptor_mismatch']);
});

test('a descriptor that was never that of the content is found although the chain began with it', () => {
  const forged = { ...submission, descriptor: '0'.repeat(64) };
  const whole = appendFacts(newChain(forged), []);
  const fresh = play(submission, [])[0]?.job ?? job;
  expect(codes({ job: { ...fresh, submission: forged }, payload: PAYLOAD, chain: whole })).toEqual([
    'descriptor_mismatch',
  ]);
});

test('every flipped bit of every closed entry is found', { timeout: 30_000 }, () => {
  for (const [index, entry] of chain.entries.entries()) {
    for (let bit = 0; bit < entry.length * 8; bit++) {
      const flipped = new Uint8Array(entry);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const forged: Chain = { ...chain, entries: chain.entries.with(index, flipped) };
      expect(codes({ ...evidence, chain: forged })).toContain('root_mismatch');
    }
  }
});

test('entries that are dropped, swapped or cut off at the end are found', () => {
  const [first, second] = chain.entries;
  if (first === undefined || second === undefined) throw new Error('too few entries');
  for (const entries of [
    chain.entries.slice(1),
    chain.entries.slice(0, -1),
    chain.entries.toSpliced(0, 2, second, first),
    [],
  ]) {
    expect(codes({ ...evidence, chain: { ...chain, entries } })).toContain('root_mismatch');
  }
});

test('a history that was rewritten together with its root is found by replay', () => {
  const forged = appendFacts(newChain(submission), [SAMPLES.cancel]);
  expect(codes({ ...evidence, chain: forged })).toContain('state_mismatch');
  const impossible = appendFacts(newChain(submission), [SAMPLES.begun, SAMPLES.cancel]);
  expect(verifyJob({ ...evidence, chain: impossible }).faults).toEqual([
    { code: 'illegal_entry', at: 0, detail: 'core refuses it: stale_token' },
  ]);
});

test('every entry that is no entry is named by its index, and nothing is replayed over the gap', () => {
  const entries = [Uint8Array.of(99), ...chain.entries.slice(1), new Uint8Array()];
  const faults = verifyJob({ ...evidence, chain: { ...chain, entries } }).faults;
  expect(faults.map(({ code, at }) => [code, at])).toEqual([
    ['root_mismatch', null],
    ['undecodable', 0],
    ['undecodable', entries.length - 1],
  ]);
});

test('an open delivery that cannot be one is found: its order, its type, its fields', () => {
  const [claim, begin] = chain.open;
  if (claim === undefined || begin === undefined) throw new Error('no open delivery');
  const at = chain.entries.length;
  const open = (given: readonly unknown[]): Evidence => ({
    ...evidence,
    chain: { ...chain, open: given as Chain['open'] },
  });
  expect(codes(open([begin, claim]))).toEqual(['open_delivery']);
  expect(codes(open([claim, begin, begin]))).toEqual(['open_delivery']);
  expect(codes(open([SAMPLES.cancel]))).toEqual(['open_delivery']);
  expect(verifyJob(open([claim, { ...begin, token: 0 }])).faults).toEqual([
    { code: 'undecodable', at: at + 1, detail: 'token must be a whole number from 1 to 9007199254740991' },
  ]);
  expect(codes(open([]))).toContain('state_mismatch');
  expect(details(open([claim]))).toContain('state is 3, and replay gives 2');
});

test('verifying is inert: it changes nothing it is given', () => {
  const before = JSON.stringify(evidence);
  verifyJob(Object.freeze({ ...evidence, job: Object.freeze(job), chain: Object.freeze(chain) }));
  expect(JSON.stringify(evidence)).toBe(before);
});
