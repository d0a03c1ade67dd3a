/** The ledger of definitions, and the shape a job starts in. */
import { describe, expect, test } from 'vitest';
import { compareDefinition, type DefinitionRecord } from '../../src/core/definitions.ts';
import { everRan, hasUnsafeOpenStep, initialJob, lacksRequiredEffect } from '../../src/core/job.ts';
import { STATE } from '../../src/core/states.ts';
import { submissionOf, T0 } from '../support/job-builders.ts';

const record = (changes: Partial<DefinitionRecord> = {}): DefinitionRecord => ({
  kind: 'mail',
  revision: 1,
  schemaDigest: 'aa',
  normalisation: 'zod-4',
  ...changes,
});

describe('a definition', () => {
  test('never seen is new, also beside other kinds and other revisions', () => {
    expect(compareDefinition([], record())).toBe('new');
    const others = [record({ kind: 'sms', schemaDigest: 'bb' }), record({ revision: 2, schemaDigest: 'bb' })];
    expect(compareDefinition(others, record())).toBe('new');
  });

  test('with another digest under the same normalisation is changed, whatever else is recorded', () => {
    expect(compareDefinition([record()], record({ schemaDigest: 'bb' }))).toBe('changed');
    const records = [record({ normalisation: 'zod-3', schemaDigest: 'bb' }), record()];
    expect(compareDefinition(records, record({ schemaDigest: 'bb' }))).toBe('changed');
  });

  test('that was seen under this normalisation is the same, also when others were', () => {
    expect(compareDefinition([record()], record())).toBe('same');
    expect(compareDefinition([record({ schemaDigest: 'bb' }), record()], record())).toBe('same');
  });

  test('is called neither same nor changed where digests cannot be compared', () => {
    expect(compareDefinition([record()], record({ normalisation: 'zod-5' }))).toBe('incomparable');
    expect(compareDefinition([record()], record({ schemaDigest: null }))).toBe('incomparable');
    expect(compareDefinition([record({ schemaDigest: null })], record())).toBe('incomparable');
    expect(compareDefinition([record({ schemaDigest: null })], record({ schemaDigest: null }))).toBe(
      'incomparable',
    );
  });
});

describe('a job starts', () => {
  test('PENDING unless its start lies ahead of its admission, equality included', () => {
    expect(initialJob(1, submissionOf()).state).toBe(STATE.PENDING);
    expect(initialJob(1, submissionOf({ startAt: T0 - 1 })).state).toBe(STATE.PENDING);
    expect(initialJob(1, submissionOf({ startAt: T0 + 1 })).state).toBe(STATE.SCHEDULED);
  });

  test('with nothing behind it', () => {
    const submission = submissionOf({ startAt: T0 + 9 });
    expect(initialJob(41, submission)).toEqual({
      id: 41,
      submission,
      state: STATE.SCHEDULED,
      version: 0,
      tick: T0,
      idempotent: true,
      attempt: 0,
      delivery: 0,
      runs: 0,
      occurrence: 0,
      startAt: T0 + 9,
      slotAt: null,
      token: 0,
      lease: null,
      answered: null,
      testified: null,
      testimonies: 0,
      cancelRequested: false,
      outcomeUnknown: false,
      cause: null,
      openSteps: [],
      requiredEffectCommitted: false,
      marked: false,
      endedAt: null,
    });
    expect(everRan(initialJob(1, submission))).toBe(false);
  });

  test('with the slot of its recurrence, and with what it inherits', () => {
    const recurrence = { intervalMs: 5, maxOccurrences: 5, maxCatchUp: 5 };
    const openSteps = [{ key: 'mail', idempotent: false }];
    const inherited = { fromId: 3, occurrence: 4, requiredEffectCommitted: true, openSteps };
    const job = initialJob(
      1,
      submissionOf({ recurrence, inherited, requiresEffect: 'charge', idempotent: false }),
    );
    const { occurrence, requiredEffectCommitted } = inherited;
    expect(job).toMatchObject({
      slotAt: T0,
      occurrence,
      openSteps,
      requiredEffectCommitted,
      idempotent: false,
    });
    expect([hasUnsafeOpenStep(job), lacksRequiredEffect(job)]).toEqual([true, false]);
    expect(lacksRequiredEffect({ ...job, requiredEffectCommitted: false })).toBe(true);
    expect(lacksRequiredEffect(initialJob(1, submissionOf()))).toBe(false);
  });
});
