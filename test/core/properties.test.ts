/** What no sequence of commands can do to a job, whoever sends them, in whatever context, by whatever clock. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { Fact } from '../../src/core/facts.ts';
import { type Job, lacksRequiredEffect } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { STATE, stateAwaitsWorker, stateHoldsLease, stateIsTerminal } from '../../src/core/states.ts';
import { isTick } from '../../src/core/ticks.ts';
import { replay } from '../../src/evidence/index.ts';
import { live, moves, type Step, submissions } from './exploring.ts';

/** What a rule demands of a step, by name; all of it must be true. */
type Demands = Readonly<Record<string, boolean>>;

/** Every step of every life keeps the rule. */
function expectOfEveryStep(
  rule: (step: Step, index: number, life: readonly Step[]) => Demands,
  numRuns = 300,
): void {
  fc.assert(
    fc.property(submissions, moves, (submission, moved) => {
      const life = live(submission, moved);
      for (const [index, step] of life.entries()) {
        const broken = Object.entries(rule(step, index, life)).filter(([, kept]) => !kept);
        if (broken.length === 0) continue;
        throw new Error(`${broken.map(([name]) => name).join('; ')}: ${JSON.stringify(step)}`);
      }
    }),
    { numRuns },
  );
}

const equal = isDeepStrictEqual;
const stored = (step: Step): Job => step.decision.job;
const recorded = (life: readonly Step[], index: number): readonly Fact[] =>
  life.slice(0, index + 1).flatMap((step) => step.decision.facts);

/** Commands that come under a token which is not the last one. */
function isStale({ command, before, now }: Step): boolean {
  if (!('token' in command)) return false;
  const last = lapse(before, now).job.token;
  return command.type === 'claim' ? command.token <= last : command.token !== last;
}

describe('a refused command', () => {
  test('leaves the job equal to its lapsed self, but for a report about an attempt in doubt', () => {
    expectOfEveryStep(({ before, command, decision, now }) => {
      if (decision.accepted) return {};
      const { job, facts } = lapse(before, now);
      const more = decision.facts.slice(facts.length);
      const types = more.map((fact) => fact.type);
      const settlesLast = command.type === 'settle' && command.token === job.token;
      return {
        'the lapse is recorded': equal(decision.facts.slice(0, facts.length), facts),
        'the job is its lapsed self': more.length > 0 || equal(decision.job, job),
        'more is testimony, and perhaps its decision': equal(
          types,
          ['testimony', 'reconciled'].slice(0, types.length),
        ),
        'more is of the holder in doubt': more.length === 0 || (settlesLast && job.state === STATE.UNCERTAIN),
        'no testimony is kept twice': more.length === 0 || !decision.testimony,
      };
    });
  });

  test('under a stale token changes nothing at all, and its testimony stays beside the chain', () => {
    expectOfEveryStep((step) => {
      if (!isStale(step)) return {};
      const { before, now, decision } = step;
      const { job, facts } = lapse(before, now);
      return {
        refused: !decision.accepted,
        'nothing but the lapse': equal([decision.job, decision.facts], [job, facts]),
      };
    });
  });
});

describe('a job', () => {
  test('that ended is never reopened, and nothing is recorded of it any more', () => {
    expectOfEveryStep(({ before, decision }) => {
      if (!stateIsTerminal(before.state)) return {};
      return {
        'the job stands': equal(decision.job, before),
        'nothing is recorded': decision.facts.length === 0,
        'nothing is asked': decision.asks.length === 0,
      };
    });
  });

  test('counts in its version exactly the facts recorded of it', () => {
    expectOfEveryStep((step, index, life) => ({
      'version is the number of facts': stored(step).version === recorded(life, index).length,
    }));
  });

  test('holds a lease exactly while it is LEASED or RUNNING, and under its last token', () => {
    expectOfEveryStep((step) => {
      const { state, lease, token } = stored(step);
      return {
        'a lease exactly with custody': (lease !== null) === stateHoldsLease(state),
        'the lease is of the last token': lease === null || lease.token === token,
      };
    });
  });

  test('stays within its bounds, and its parts agree with one another', () => {
    expectOfEveryStep((step) => {
      const job = stored(step);
      const { maxAttempts, maxDeliveries } = job.submission;
      const waits = stateAwaitsWorker(job.state);
      return {
        'attempts are bounded': job.attempt <= Math.min(maxAttempts, job.runs),
        'runs are deliveries': job.runs <= job.delivery,
        'deliveries are bounded': job.delivery <= maxDeliveries,
        'ended exactly when terminal': (job.endedAt !== null) === stateIsTerminal(job.state),
        'no folded state is stored': job.state !== STATE.RETRYABLE_FAILURE,
        'a cancelled job does not wait': !waits || !job.cancelRequested,
        'what waits has an attempt left': !waits || job.attempt < maxAttempts,
        'what waits has a delivery left': !waits || job.delivery < maxDeliveries,
        'success has its effect': job.state !== STATE.SUCCEEDED || !lacksRequiredEffect(job),
        'an unknown outcome is an end': !job.outcomeUnknown || stateIsTerminal(job.state),
      };
    });
  });

  test('that may not run twice is never run again after a loss without a recorded decision', () => {
    expectOfEveryStep(({ before, decision }) => {
      const { idempotent } = before;
      const demands: Record<string, boolean> = {};
      let from = before.state;
      for (const { type, to } of decision.facts) {
        const isLost = type === 'lapsed' && from === STATE.RUNNING && !idempotent;
        const leavesDoubt = from === STATE.UNCERTAIN && to !== STATE.UNCERTAIN;
        demands[`${type}: a loss is a doubt`] = !isLost || to === STATE.UNCERTAIN;
        demands[`${type}: a doubt is decided`] =
          !leavesDoubt || type === 'reconciled' || type === 'retry_decided';
        demands[`${type}: no policy runs it again`] = type !== 'retry_decided' || idempotent;
        from = to;
      }
      return demands;
    });
  });
});

describe('time', () => {
  test('never falls in the record of a job, except across a recorded correction of the clock', () => {
    expectOfEveryStep((step) => {
      const demands: Record<string, boolean> = {};
      let last = step.before.tick;
      for (const fact of step.decision.facts) {
        demands[`${fact.type}: its tick is now`] = fact.tick === step.now;
        demands[`${fact.type}: ticks do not fall`] =
          fact.type === 'clock_corrected' ? fact.from === last : fact.tick >= last;
        last = fact.tick;
      }
      return { ...demands, 'the tick of the job is that of its last fact': stored(step).tick === last };
    });
  });

  test('starts no attempt at or past the deadline, and schedules none there', () => {
    expectOfEveryStep((step) => {
      const deadline = step.before.submission.deadline ?? Number.POSITIVE_INFINITY;
      const starts = step.decision.facts.filter((fact) => fact.type === 'begun' || fact.type === 'claimed');
      const { state, startAt, tick } = stored(step);
      return {
        'starts lie before the deadline': starts.every((fact) => fact.tick < deadline),
        'a schedule lies before the deadline': state !== STATE.SCHEDULED || startAt < deadline,
        'nothing waits on the deadline': !stateAwaitsWorker(state) || tick < deadline,
      };
    });
  });

  test('is never a number that is no tick, in the job, in its record or in what is asked for', () => {
    const numbersIn = (value: unknown): readonly number[] => {
      if (typeof value === 'number') return [value];
      return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersIn) : [];
    };
    expectOfEveryStep(({ decision }) => {
      const { submission: _submission, ...job } = decision.job;
      return { 'every number is a tick': numbersIn([job, decision.facts, decision.asks]).every(isTick) };
    });
  });
});

test('a token is granted once, and each is above the one before it', () => {
  expectOfEveryStep((step) => {
    const granted = step.decision.facts.flatMap((fact) => (fact.type === 'claimed' ? [fact.token] : []));
    return {
      'tokens rise': granted.every((token) => token > step.before.token),
      'the last one granted is kept': stored(step).token === (granted.at(-1) ?? step.before.token),
    };
  });
});

test('a decision changes nothing it is given, and is the same whenever it is asked for', () => {
  const frozen = <Value>(value: Value): Value => {
    if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
    return Object.freeze(value);
  };
  expectOfEveryStep(({ before, command, context, now, decision }) => {
    const again = decide(frozen(structuredClone(before)), frozen(command), frozen(context), now);
    return { 'decided the same': equal(again, decision) };
  }, 100);
});

test('replaying what was recorded gives the stored job after every step', () => {
  const withoutHeartbeats = (job: Job) => ({
    ...job,
    lease: job.lease && { ...job.lease, expiresAt: 0, lengthMs: 0 },
  });
  expectOfEveryStep((step, index, life) => {
    if (step.decision.facts.length === 0) return {};
    const replayed = replay(1, step.before.submission, recorded(life, index));
    if (!replayed.ok) return { [`entry ${replayed.at}: ${replayed.fault}, ${replayed.detail}`]: false };
    return { 'the same job': equal(withoutHeartbeats(replayed.job), withoutHeartbeats(stored(step))) };
  }, 150);
});

test('these lives are worth the name: they go through every command, every fact and most refusals', () => {
  const seen = new Set<string>();
  const lives = fc.sample(fc.tuple(submissions, moves), { numRuns: 400, seed: 7 });
  for (const [submission, moved] of lives) {
    for (const { command, decision } of live(submission, moved)) {
      seen.add(`${command.type} ${decision.accepted ? 'accepted' : decision.refused}`);
      for (const fact of decision.facts) seen.add(fact.type);
    }
  }
  const facts = [
    'claimed',
    'begun',
    'effect_committed',
    'step_begun',
    'step_done',
    'settled',
    'retry_decided',
  ];
  const others = ['lapsed', 'cancel', 'reconciled', 'promoted', 'testimony', 'clock_corrected'];
  expect([...facts, ...others].filter((type) => !seen.has(type))).toEqual([]);
  const accepted = [...seen].filter((one) => one.endsWith(' accepted'));
  expect(accepted).toHaveLength(10);
  expect(seen.size).toBeGreaterThan(70);
});
