/** Internal jobs: they belong to Custody, wait for nobody, and exist at most once for each attempt they are about. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  descriptorText,
  internalKey,
  internalPayload,
  internalSubmission,
} from '../../src/core/admission.ts';
import { canonicalJson } from '../../src/core/canonical.ts';
import { initialJob } from '../../src/core/job.ts';
import { readRequest } from '../../src/core/request.ts';
import { STATE } from '../../src/core/states.ts';
import { running, T0 } from '../support/job-builders.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('an internal job', () => {
  const link = { purpose: 'reconcile', parentId: 12, parentToken: 34 } as const;
  const parent = running({ queue: 'slow', orderingKey: 'bob', deadline: T0 + 900, maxAttempts: 2 });
  const submission = internalSubmission(parent, link, T0 + 30, { now: T0, lineage: 'lineage-2', sha256 });

  test('has one key per parent, attempt and purpose, which no user may ask for', () => {
    expect(internalKey(link)).toBe('custody:12:34:reconcile');
    const read = readRequest({
      kind: 'a',
      revision: 1,
      payload: 0,
      idempotent: true,
      idempotencyKey: internalKey(link),
    });
    expect(read).toMatchObject({ ok: false, problem: { field: 'idempotencyKey' } });
  });

  test('has a payload that is canonical JSON', () => {
    const text = internalPayload(link);
    expect(canonicalJson(JSON.parse(text), { maxDepth: 9, maxBytes: 999 })).toEqual({ ok: true, text });
    expect(JSON.parse(text)).toEqual(link);
  });

  test('waits for nobody, dies of no deadline, goes first, may run again, and has no internal jobs of its own', () => {
    const payload = internalPayload(link);
    const descriptor = { kind: 'charge-card', queue: 'slow', orderingKey: null, payload, recurrence: null };
    expect(submission).toEqual({
      kind: 'charge-card',
      revision: 2,
      queue: 'slow',
      orderingKey: null,
      payloadDigest: sha256(payload),
      idempotencyKey: 'custody:12:34:reconcile',
      descriptor: sha256(descriptorText(descriptor)),
      requestId: null,
      lineage: 'lineage-2',
      admittedAt: T0,
      startAt: T0 + 30,
      deadline: null,
      priority: 1_001,
      idempotent: true,
      maxAttempts: 20,
      maxDeliveries: 1_020,
      backoffBaseMs: 10,
      backoffMaxMs: 80,
      reconcileAfterMs: 0,
      acceptLateReports: false,
      reconciles: false,
      compensates: false,
      requiresEffect: null,
      recurrence: null,
      internal: link,
      inherited: null,
    });
    expect(initialJob(2, submission).state).toBe(STATE.SCHEDULED);
  });
});
