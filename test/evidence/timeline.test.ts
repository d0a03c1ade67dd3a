import { expect, describe as group, test } from 'vitest';
import { internalSubmission } from '../../src/core/admission.ts';
import type { Fact } from '../../src/core/facts.ts';
import { initialJob } from '../../src/core/job.ts';
import { describe, FACT_TYPES, sha256Hex, timelineOf } from '../../src/evidence/index.ts';
import { SAMPLES } from './facts.ts';
import { submissionOf } from './histories.ts';

group(
  'every fact has a sentence that says who, under which token, until when, and what became of the job:',
  () => {
    const { reconciled, settled, retry_decided, cancel, lapsed, clock_corrected, step_begun, claimed } =
      SAMPLES;
    test.each<[Fact, string]>([
      [claimed, 'Worker w-1 took custody under token 12 until 32000: delivery 3, not safe to run again.'],
      [
        { ...claimed, idempotent: true },
        'Worker w-1 took custody under token 12 until 32000: delivery 3, safe to run again.',
      ],
      [SAMPLES.begun, 'Worker w-1 began attempt 2 under token 12, held until 32000.'],
      [SAMPLES.effect_committed, 'Worker w-1 under token 12 committed the effect ledger-row.'],
      [step_begun, 'Worker w-1 under token 12 began the external step charge, which may run again.'],
      [
        { ...step_begun, idempotent: false },
        'Worker w-1 under token 12 began the external step charge, which must not run twice.',
      ],
      [SAMPLES.step_done, 'Worker w-1 under token 12 finished the external step charge.'],
      [
        settled,
        'Worker w-1 under token 12 reported retryable: the job is SCHEDULED (retry_scheduled), to start from 2507.',
      ],
      [
        { ...settled, outcome: 'interrupted', neverCalled: true, cause: 'interrupted', to: 0 },
        'Worker w-1 under token 12 reported interrupted before the handler was called: the job is PENDING (interrupted), to start from 2507.',
      ],
      [
        { ...settled, outcome: 'refused', byUpgrade: true, cause: 'upgrade_refused' },
        'Worker w-1 under token 12 reported refused because no upgrade reads the payload: the job is SCHEDULED (upgrade_refused), to start from 2507.',
      ],
      [
        retry_decided,
        'The policy decided to run the uncertain attempt of token 12 again: the job is SCHEDULED (policy_retry), to start from 2500.',
      ],
      [
        { ...retry_decided, to: 7, cause: 'cancelled', startAt: null },
        'The policy decided to run the uncertain attempt of token 12 again: the job is CANCELLED (cancelled).',
      ],
      [lapsed, 'The lease of token 12 ran out at 32000: the job is UNCERTAIN (lease_expired).'],
      [
        { ...lapsed, by: 'deadline', at: 31_000, cause: 'deadline_passed', to: 9 },
        'The deadline ran out at 31000: the job is DEAD_LETTERED (deadline_passed).',
      ],
      [cancel, 'ada cancelled the job.'],
      [{ ...cancel, to: 3 }, 'ada asked to cancel the job, which stays RUNNING until its next move.'],
      [
        reconciled,
        'ada decided that the attempt of token 12 may run again (step charge took place, step mail did not take place): the job is PENDING (reconciled), to start from 2000.',
      ],
      [
        {
          ...reconciled,
          by: 'reconciler',
          actor: 'w-2',
          decision: 'failed',
          steps: [],
          startAt: null,
          to: 6,
        },
        'The reconciler (w-2) decided that the attempt of token 12 did not happen and no longer can: the job is PERMANENT_FAILURE (reconciled).',
      ],
      [
        {
          ...reconciled,
          by: 'late_report',
          actor: 'w-1',
          decision: 'succeeded',
          steps: [],
          startAt: null,
          cause: 'late_report',
          to: 4,
        },
        'The late report of worker w-1 decided that the attempt of token 12 succeeded: the job is SUCCEEDED (late_report).',
      ],
      [SAMPLES.promoted, 'ada moved the start of the job to now.'],
      [
        SAMPLES.testimony,
        'Worker w-1 under token 12 reported succeeded too late to settle the job; it is kept as testimony.',
      ],
      [
        clock_corrected,
        'The clock, which had run ahead to 2000, was followed back to 1500, the lease cut to end at 31500.',
      ],
      [
        { ...clock_corrected, expiresAt: null },
        'The clock, which had run ahead to 2000, was followed back to 1500.',
      ],
      [
        { ...claimed, expiresAt: null },
        'Worker w-1 took custody under token 12: delivery 3, not safe to run again.',
      ],
    ])('$type', (fact, sentence) => {
      expect(describe(fact)).toBe(sentence);
    });

    test('no type is left out, and each is one sentence', () => {
      for (const type of FACT_TYPES) expect(describe(SAMPLES[type])).toMatch(/^[A-Za-z].*[^.]\.$/);
    });
  },
);

test('a name cannot colour, reorder or hide a sentence', () => {
  const sentence = describe({ ...SAMPLES.cancel, actor: 'ada\u009b31m\u202egnp\u2028\u200b' });
  expect(sentence).toBe('ada\\u{9b}31m\\u{202e}gnp\\u{2028}\\u{200b} cancelled the job.');
});

test('ticks are printed as asked for, everywhere', () => {
  const format = (tick: number): string => `<${tick}>`;
  const submission = submissionOf({ startAt: 1_500, deadline: 9_000 });
  const moments = timelineOf(submission, Object.values(SAMPLES), format);
  for (const { sentence } of moments) expect(sentence.replace(/<\d+>/g, '')).not.toMatch(/\d{4}/);
  expect(describe(SAMPLES.begun, format)).toContain('until <32000>');
});

group('the admission comes first', () => {
  const plain = submissionOf();
  const link = { purpose: 'reconcile', parentId: 7, parentToken: 12 } as const;
  const internal = internalSubmission(initialJob(7, plain), link, 2_000, {
    now: 1_500,
    lineage: 'x',
    sha256: sha256Hex,
  });
  const inherited = { fromId: 3, occurrence: 0, requiredEffectCommitted: false, openSteps: [] };
  test.each([
    [plain, 'PENDING', 'A charge-card job was admitted to queue default, to start from 1000.'],
    [
      submissionOf({ orderingKey: 'alice', startAt: 1_500, deadline: 9_000 }),
      'SCHEDULED',
      'A charge-card job was admitted to queue default in lane alice, to start from 1500, deadline 9000.',
    ],
    [
      internal,
      'SCHEDULED',
      'A charge-card job was admitted to queue default to reconcile job 7, to start from 2000.',
    ],
    [
      submissionOf({ inherited }),
      'PENDING',
      'A charge-card job was admitted to queue default, made again from job 3, to start from 1000.',
    ],
  ])('of %j', (submission, state, sentence) => {
    expect(timelineOf(submission, [SAMPLES.cancel])).toEqual([
      { tick: submission.admittedAt, state, sentence },
      { tick: 2_000, state: 'CANCELLED', sentence: 'ada cancelled the job.' },
    ]);
  });
});
