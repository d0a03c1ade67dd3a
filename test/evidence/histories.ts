/** Random histories: submissions, and commands run through core's own `decide` as a store would run them. */
import fc from 'fast-check';
import { descriptorText } from '../../src/core/admission.ts';
import type { Command, Context } from '../../src/core/commands.ts';
import { decide } from '../../src/core/decide.ts';
import type { Fact, StepVerdict } from '../../src/core/facts.ts';
import { initialJob, type Job, OUTCOMES, type Submission } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { STATE, stateIsTerminal } from '../../src/core/states.ts';
import { appendFacts, type Chain, newChain, sha256Hex } from '../../src/evidence/index.ts';

export const PAYLOAD = '{"account":"alice","cents":700}';

/** A submission whose digests are true of PAYLOAD. */
export function submissionOf(changes: Partial<Submission> = {}): Submission {
  const submission: Submission = {
    kind: 'charge-card',
    revision: 1,
    queue: 'default',
    orderingKey: null,
    payloadDigest: sha256Hex(PAYLOAD),
    idempotencyKey: null,
    descriptor: '',
    requestId: null,
    lineage: 'lineage-1',
    admittedAt: 1_000,
    startAt: 1_000,
    deadline: null,
    priority: 0,
    idempotent: true,
    maxAttempts: 3,
    maxDeliveries: 1_003,
    backoffBaseMs: 10,
    backoffMaxMs: 80,
    reconcileAfterMs: 30,
    acceptLateReports: true,
    reconciles: false,
    compensates: false,
    requiresEffect: null,
    recurrence: null,
    internal: null,
    inherited: null,
    ...changes,
  };
  return { ...submission, descriptor: sha256Hex(descriptorText({ ...submission, payload: PAYLOAD })) };
}

export const submissions: fc.Arbitrary<Submission> = fc
  .record({
    idempotent: fc.boolean(),
    maxAttempts: fc.integer({ min: 1, max: 4 }),
    spare: fc.integer({ min: 0, max: 6 }),
    delay: fc.constantFrom(0, 0, 40),
    deadline: fc.option(fc.integer({ min: 41, max: 1_500 })),
    acceptLateReports: fc.boolean(),
    requiresEffect: fc.constantFrom(null, null, 'effect-0'),
    recurs: fc.constantFrom(false, false, true),
    inherits: fc.constantFrom(false, false, true),
  })
  .map(
    ({
      idempotent,
      maxAttempts,
      spare,
      delay,
      deadline,
      acceptLateReports,
      requiresEffect,
      recurs,
      inherits,
    }) =>
      submissionOf({
        idempotent,
        maxAttempts,
        maxDeliveries: maxAttempts + spare,
        startAt: 1_000 + delay,
        deadline: deadline === null ? null : 1_000 + deadline,
        acceptLateReports,
        requiresEffect,
        recurrence: recurs ? { intervalMs: 50, maxOccurrences: 3, maxCatchUp: 2 } : null,
        inherited: inherits
          ? {
              fromId: 3,
              occurrence: 0,
              requiredEffectCommitted: false,
              openSteps: [{ key: 'effect-1', idempotent }],
            }
          : null,
      }),
  );

/** One random move: how far the clock goes, and numbers to choose a command with. */
export interface Move {
  readonly ahead: number;
  readonly wild: boolean;
  readonly choice: number;
  readonly detail: number;
}

const move: fc.Arbitrary<Move> = fc.record({
  ahead: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0, max: 15 }) },
    { weight: 1, arbitrary: fc.integer({ min: 30, max: 200 }) },
    { weight: 1, arbitrary: fc.integer({ min: -120, max: -1 }) },
  ),
  wild: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
  choice: fc.nat({ max: 1_000 }),
  detail: fc.nat({ max: 1_000 }),
});

export const moves: fc.Arbitrary<readonly Move[]> = fc.array(move, {
  minLength: 1,
  maxLength: 45,
  size: 'max',
});

/** A job as a store would hold it, after every move. */
export interface Standing {
  readonly job: Job;
  readonly chain: Chain;
  readonly facts: readonly Fact[];
  readonly corrections: number;
}

/** Runs moves as a store would, and tells where the job stands after each. */
export function play(submission: Submission, played: readonly Move[]): readonly Standing[] {
  let job = initialJob(7, submission);
  let chain = newChain(submission);
  let facts: readonly Fact[] = [];
  let now = submission.admittedAt;
  let lastToken = 0;
  let corrections = 0;
  const marks = new Map<string, string>();
  for (const { key } of job.openSteps) marks.set(`${job.occurrence}/${key}`, sha256Hex(key));
  const standings: Standing[] = [{ job, chain, facts, corrections }];
  for (const { ahead, wild, choice, detail } of played) {
    now = Math.max(0, now + ahead);
    const kind = wild ? ANY[choice % ANY.length] : likely(job)[choice % likely(job).length];
    const place = (key: string): string => `${job.occurrence}/${key}`;
    let decided: { readonly job: Job; readonly facts: readonly Fact[] };
    if (kind === 'time') {
      decided = lapse(job, now);
    } else {
      lastToken += kind === 'claim' ? 1 + (detail % 3) : 0;
      const command = commandFor(kind ?? 'claim', job, detail, choice, lastToken, now);
      const key = 'key' in command ? command.key : '';
      const mark = marks.get(place(key));
      const context: Context = {
        laneHead: true,
        queuePaused: false,
        claimer: { revision: 1, idempotent: detail % 5 > 0 },
        effect: mark === undefined ? null : { descriptor: mark, result: null },
      };
      decided = decide(job, command, context, now);
    }
    for (const fact of decided.facts) {
      if (fact.type === 'effect_committed' || fact.type === 'step_begun')
        marks.set(place(fact.key), fact.descriptor);
      if (fact.type === 'reconciled') forget(marks, fact.steps, place);
      if (fact.type === 'clock_corrected') corrections++;
    }
    job = decided.job;
    facts = [...facts, ...decided.facts];
    chain = appendFacts(chain, decided.facts);
    standings.push({ job, chain, facts, corrections });
  }
  return standings;
}

function forget(
  marks: Map<string, string>,
  steps: readonly StepVerdict[],
  place: (key: string) => string,
): void {
  for (const step of steps) if (!step.tookPlace) marks.delete(place(step.key));
}

const ANY = [
  'claim',
  'begin',
  'extend',
  'commit',
  'open',
  'finish',
  'settle',
  'cancel',
  'reconcile',
  'promote',
  'time',
] as const;
type Kind = (typeof ANY)[number];

/** Commands that have a chance in this state, so that histories get long. */
function likely(job: Job): readonly Kind[] {
  switch (job.state) {
    case STATE.PENDING:
      return ['claim', 'claim', 'claim', 'time'];
    case STATE.SCHEDULED:
      return ['claim', 'claim', 'promote', 'time'];
    case STATE.LEASED:
      return ['begin', 'begin', 'begin', 'extend', 'settle', 'time'];
    case STATE.RUNNING:
      return ['extend', 'commit', 'open', 'open', 'finish', 'settle', 'settle', 'time', 'time', 'cancel'];
    default:
      return stateIsTerminal(job.state)
        ? ['time']
        : ['settle', 'settle', 'reconcile', 'reconcile', 'time', 'cancel'];
  }
}

function commandFor(
  kind: Exclude<Kind, 'time'>,
  job: Job,
  detail: number,
  choice: number,
  fresh: number,
  now: number,
): Command {
  const { token } = job;
  const key = `effect-${detail % 3}`;
  const operated = {
    actor: `person-${detail % 2}`,
    reason: detail % 2 ? sha256Hex('why') : null,
    version: null,
  };
  switch (kind) {
    case 'claim':
      return { type: 'claim', token: fresh, worker: `w-${detail % 3}`, leaseMs: 1 + (choice % 90) };
    case 'begin':
      return { type: 'begin', token };
    case 'extend':
      return { type: 'extend', token, extendMs: 1 + (choice % 120) };
    case 'commit':
      return { type: 'commit_effect', token, key, descriptor: sha256Hex(key), result: sha256Hex('result') };
    case 'open':
      return { type: 'begin_step', token, key, descriptor: sha256Hex(key), idempotent: choice % 2 === 0 };
    case 'finish': {
      const open = job.openSteps[detail % Math.max(1, job.openSteps.length)];
      return { type: 'finish_step', token, key: open?.key ?? key, result: sha256Hex('done') };
    }
    case 'settle':
      return {
        type: 'settle',
        token,
        worker: `w-${detail % 3}`,
        outcome: OUTCOMES[detail % OUTCOMES.length] ?? 'succeeded',
        digest: sha256Hex(`report ${choice % 3}`),
        delayMs: choice % 4 === 0 ? choice % 70 : null,
        jitterMs: choice % 9,
        until: choice % 5 === 0 ? null : now + (choice % 60),
        neverCalled: choice % 3 === 0,
        byUpgrade: choice % 2 === 0,
      };
    case 'cancel':
      return { type: 'cancel', ...operated };
    case 'reconcile': {
      const steps = job.openSteps.map((step, index) => {
        const tookPlace = (detail + index) % 2 === 0;
        return { key: step.key, tookPlace, result: tookPlace ? sha256Hex('step') : null };
      });
      const decision = (['succeeded', 'failed', 'retry', 'retry'] as const)[detail % 4] ?? 'retry';
      const by = choice % 2 ? 'person' : 'reconciler';
      return { type: 'reconcile', token, decision, by, ...operated, steps: choice % 6 ? steps : [] };
    }
    case 'promote':
      return { type: 'promote', ...operated };
  }
}

/** A job without what heartbeats move. */
export function withoutHeartbeats(job: Job): unknown {
  return { ...job, lease: job.lease && { token: job.lease.token, worker: job.lease.worker } };
}

/** A job that failed once, was claimed again and runs: closed entries behind it, and an open delivery. */
export function retriedAndRunning(): Standing {
  const go = (choice: number): Move => ({ ahead: 5, wild: false, choice, detail: 1 });
  const last = play(submissionOf(), [60, 0, 5, 60, 60, 60, 0].map(go)).at(-1);
  if (last?.chain.open.length !== 2 || last.chain.entries.length !== 3)
    throw new Error('the story went elsewhere');
  return last;
}
