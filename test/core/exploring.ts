/** Random lives of one job: every command, every context, a clock that jumps both ways, and numbers that are none. */
import fc from 'fast-check';
import type { Command, Context } from '../../src/core/commands.ts';
import { type Decision, decide } from '../../src/core/decide.ts';
import { DECIDED, type Fact } from '../../src/core/facts.ts';
import { initialJob, type Job, OUTCOMES, type Submission } from '../../src/core/job.ts';
import { limits } from '../../src/core/limits.ts';
import { STATE, stateIsTerminal } from '../../src/core/states.ts';
import {
  begin,
  beginStep,
  cancel,
  claim,
  commitEffect,
  contextOf,
  extend,
  finishStep,
  promote,
  reconcile,
  settle,
  submissionOf,
  T0,
} from '../support/job-builders.ts';

/** One decision of a life, and where the job stood before it. */
export interface Step {
  readonly before: Job;
  readonly command: Command;
  readonly context: Context;
  readonly now: number;
  readonly decision: Decision;
}

/** What chance decides of one step; the rest follows from where the job stands. */
interface Move {
  readonly ahead: number;
  readonly dice: readonly number[];
  readonly garbage: number | null;
}

const GARBAGE = [Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY, limits.tickMax, limits.tickMax + 1];

const move: fc.Arbitrary<Move> = fc.record({
  ahead: fc.oneof(
    { weight: 8, arbitrary: fc.nat({ max: 20 }) },
    { weight: 1, arbitrary: fc.integer({ min: 40, max: 300 }) },
    { weight: 1, arbitrary: fc.integer({ min: -200, max: -1 }) },
  ),
  dice: fc.array(fc.nat({ max: 999 }), { minLength: 9, maxLength: 9 }),
  garbage: fc.oneof(
    { weight: 9, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constantFrom(...GARBAGE) },
  ),
});

export const moves: fc.Arbitrary<readonly Move[]> = fc.array(move, {
  minLength: 1,
  maxLength: 40,
  size: 'max',
});

const inherited = (openSteps: Job['openSteps']) => {
  return { fromId: 3, occurrence: 1, requiredEffectCommitted: false, openSteps };
};

export const submissions: fc.Arbitrary<Submission> = fc
  .record({
    idempotent: fc.boolean(),
    maxAttempts: fc.integer({ min: 1, max: 4 }),
    maxDeliveries: fc.integer({ min: 1, max: 12 }),
    startAt: fc.constantFrom(T0, T0, T0 + 40),
    deadline: fc.option(fc.integer({ min: T0 + 41, max: T0 + 900 })),
    acceptLateReports: fc.boolean(),
    reconciles: fc.boolean(),
    compensates: fc.boolean(),
    requiresEffect: fc.constantFrom(null, null, 'key-0'),
    recurrence: fc.constantFrom(null, null, { intervalMs: 50, maxOccurrences: 4, maxCatchUp: 2 }),
    inherited: fc.constantFrom(null, null, inherited([]), inherited([{ key: 'key-1', idempotent: true }])),
  })
  .map((changes) => submissionOf(changes));

/** Lives a job through the moves; each step begins where the one before it ended. */
export function live(submission: Submission, moved: readonly Move[]): readonly Step[] {
  const steps: Step[] = [];
  const marks = new Set(submission.inherited?.openSteps.map(({ key }) => key));
  let job = initialJob(1, submission);
  let now = T0;
  let lastToken = 0;
  for (const { ahead, dice, garbage } of moved) {
    now = Math.max(0, now + ahead);
    lastToken += 1;
    const command = spoilt(commandFor(job, dice, lastToken, now), garbage, dice);
    const context = contextFor(command, dice, marks);
    const clock = garbage !== null && (dice[8] ?? 0) < 100 ? garbage : now;
    const decision = decide(job, command, context, clock);
    steps.push({ before: job, command, context, now: clock, decision });
    // The last tick of all is a good one: a life that got there goes on from there.
    if (decision.facts.length > 0) now = decision.job.tick;
    for (const fact of decision.facts) noteMarks(marks, fact);
    job = decision.job;
  }
  return steps;
}

/** Marks as a store keeps them: kept with their occurrence, made by effects and steps, taken back by a verdict. */
function noteMarks(marks: Set<string>, fact: Fact): void {
  if (fact.type === 'effect_committed' || fact.type === 'step_begun') marks.add(fact.key);
  if (fact.type === 'reconciled') for (const one of fact.steps) if (!one.tookPlace) marks.delete(one.key);
  if ('cause' in fact && fact.cause === 'recurrence') marks.clear();
}

function contextFor(command: Command, dice: readonly number[], marks: ReadonlySet<string>): Context {
  const [, , , lane = 0, paused = 0, claimer = 0, effect = 0] = dice;
  const key = 'key' in command ? command.key : '';
  const marked = marks.has(key) || effect < 50;
  const revision = claimer < 30 ? 1 : 2;
  return contextOf({
    laneHead: lane >= 50,
    queuePaused: paused < 50,
    claimer: claimer >= 970 ? null : { revision, idempotent: claimer % 7 > 0 },
    effect: marked ? { descriptor: (effect < 900 ? 'd' : 'f').repeat(64), result: null } : null,
  });
}

type Kind = Command['type'];
const KINDS: readonly Kind[] = [
  'claim',
  'begin',
  'extend',
  'commit_effect',
  'begin_step',
  'finish_step',
  'settle',
  'cancel',
  'reconcile',
  'promote',
];

/** Commands that may do something in this state: without a bias to them no life gets far. */
function likelyKinds(job: Job): readonly Kind[] {
  switch (job.state) {
    case STATE.PENDING:
      return ['claim'];
    case STATE.SCHEDULED:
      return ['claim', 'claim', 'promote'];
    case STATE.LEASED:
      return ['begin', 'begin', 'begin', 'extend', 'settle'];
    case STATE.RUNNING:
      return ['extend', 'commit_effect', 'begin_step', 'finish_step', 'settle', 'settle', 'settle', 'cancel'];
    default:
      return stateIsTerminal(job.state) ? KINDS : ['settle', 'settle', 'reconcile', 'reconcile', 'cancel'];
  }
}

function pick<Value>(from: readonly [Value, ...Value[]], die: number): Value {
  return from[die % from.length] ?? from[0];
}

function commandFor(job: Job, dice: readonly number[], fresh: number, now: number): Command {
  const [choice = 0, a = 0, b = 0, , , , , c = 0] = dice;
  const likely = choice < 850 ? likelyKinds(job) : KINDS;
  const kind = likely[choice % likely.length] ?? 'claim';
  // One in ten speaks for an earlier holder, or for one that never was.
  const token = c >= 100 ? job.token : Math.max(0, job.token + (c % 4) - 2);
  const key = `key-${a % 3}`;
  const version = b < 100 ? job.version - (b % 2) : null;
  switch (kind) {
    case 'claim':
      return claim({ token: c >= 100 ? fresh : token, leaseMs: 1 + (a % 60) });
    case 'begin':
      return begin(token);
    case 'extend':
      return extend(1 + (a % 90), token);
    case 'commit_effect':
      return commitEffect(key, { token });
    case 'begin_step':
      return beginStep(key, b % 2 > 0, { token });
    case 'finish_step':
      return finishStep(key, { token });
    case 'settle':
      return settle(pick([...OUTCOMES, 'uncertain', 'uncertain'], a), {
        token,
        digest: `${b % 3}`.repeat(64),
        delayMs: pick([null, b % 90, 1_000], b),
        jitterMs: a % 9,
        until: b % 9 === 0 ? null : now + (b % 90),
        neverCalled: b % 2 > 0,
        byUpgrade: b % 2 > 0,
      });
    case 'cancel':
      return cancel({ version });
    case 'promote':
      return promote({ version });
    case 'reconcile': {
      const said = b % 3 === 0 ? [] : job.openSteps;
      const steps = said.map((step, index) => {
        const tookPlace = (b + index) % 2 > 0;
        return { key: step.key, tookPlace, result: tookPlace ? 'e'.repeat(64) : null };
      });
      return reconcile(pick([...DECIDED, 'retry', 'retry'], a), { token, version, steps });
    }
  }
}

/** The command with one of its numbers replaced by one that is out of every domain, or at its very end. */
function spoilt(command: Command, garbage: number | null, dice: readonly number[]): Command {
  if (garbage === null) return command;
  const numbers = Object.entries(command).filter(([, value]) => typeof value === 'number' || value === null);
  const fields = numbers.map(([field]) => field).filter((field) => field !== 'reason');
  const field = fields[(dice[7] ?? 0) % Math.max(1, fields.length)];
  return field === undefined ? command : { ...command, [field]: garbage };
}
