/** Decides a job's history again with core's own procedures: a history that no sequence of commands gives is refused. */
import { decide } from '../core/decide.ts';
import type { Fact } from '../core/facts.ts';
import { initialJob, type Job, type Submission } from '../core/job.ts';
import { lapse } from '../core/lapse.ts';
import { limits } from '../core/limits.ts';
import { stateIsTerminal } from '../core/states.ts';
import { type CommandedFact, commandOf, EffectMarks } from './restate.ts';

/** What is wrong with a history, first applicable first. */
export const REPLAY_FAULTS = [
  'after_terminal',
  'ticks_fall',
  'token_not_rising',
  'illegal_entry',
  'entry_mismatch',
] as const;
export type ReplayFault = (typeof REPLAY_FAULTS)[number];

/** The state a history leads to, or the index of the first fact that is at fault, and why. */
export type Replayed =
  | { readonly ok: true; readonly job: Job }
  | { readonly ok: false; readonly at: number; readonly fault: ReplayFault; readonly detail: string };

/** Told the job after each decision, and the index of the last fact that the decision recorded. */
export type OnDecided = (job: Job, lastFact: number) => void;

/**
 * The job that a submission and its facts lead to. Every fact is turned back into the command it states and decided
 * again by `decide` or `lapse` at its own tick; what they would record must be exactly what was recorded. Taken from the
 * facts, because the job cannot know it, is only: the head of the lane, that the queue was not paused, the claimer's
 * definition, the expiry that heartbeats had moved the lease to, and outcomes and decisions as reported. Inert: it grants
 * nothing and changes nothing.
 *
 * `facts` in the order of their recording, as decodeEntry gave them.
 *
 * @example
 * ```ts
 * const replayed = replay(job.id, job.submission, factsOf(chain));
 * if (!replayed.ok) console.error(`entry ${replayed.at}: ${replayed.fault}, ${replayed.detail}`);
 * ```
 */
export function replay(
  id: number,
  submission: Submission,
  facts: readonly Fact[],
  onDecided?: OnDecided,
): Replayed {
  const marks = new EffectMarks();
  let job = initialJob(id, submission);
  let at = 0;
  for (let fact = facts[at]; fact !== undefined; fact = facts[at]) {
    const fault = orderFault(job, fact);
    if (fault !== null) return { ok: false, at, ...fault };
    const again = decideAgain(withRecordedLease(job, fact), fact, marks);
    if (typeof again === 'string') return { ok: false, at, fault: 'illegal_entry', detail: again };
    for (const [offset, decided] of again.facts.entries()) {
      const detail = difference(decided, facts[at + offset]);
      if (detail !== null) return { ok: false, at: at + offset, fault: 'entry_mismatch', detail };
      marks.note(decided);
    }
    at += again.facts.length;
    job = again.job;
    onDecided?.(job, at - 1);
  }
  return { ok: true, job };
}

function orderFault(job: Job, fact: Fact): { fault: ReplayFault; detail: string } | null {
  if (stateIsTerminal(job.state)) {
    return { fault: 'after_terminal', detail: `${fact.type} follows the end of the job at ${job.tick}` };
  }
  if (fact.tick < job.tick && fact.type !== 'clock_corrected') {
    return {
      fault: 'ticks_fall',
      detail: `tick ${fact.tick} follows ${job.tick} without a clock correction`,
    };
  }
  if (fact.type === 'claimed' && fact.token <= job.token) {
    return { fault: 'token_not_rising', detail: `token ${fact.token} follows ${job.token}` };
  }
  return null;
}

/**
 * Heartbeats leave no fact, so the lease in force is taken from the fact: its expiry as recorded, and as its length what
 * was left of it. A lease cut to its length when the clock was corrected then ends where it was recorded to end, unless
 * that is further off than the longest lease there is.
 */
function withRecordedLease(job: Job, fact: Fact): Job {
  const { expiresAt } = fact;
  if (job.lease === null || expiresAt === null || fact.type === 'claimed') return job;
  const lengthMs = Math.min(expiresAt - fact.tick, limits.leaseMsMax);
  return { ...job, lease: { ...job.lease, expiresAt, lengthMs } };
}

interface DecidedAgain {
  readonly job: Job;
  readonly facts: readonly Fact[];
}

/** What core decides on what the fact states, or why nothing can have led to it. */
function decideAgain(job: Job, fact: Fact, marks: EffectMarks): DecidedAgain | string {
  switch (fact.type) {
    case 'lapsed':
    case 'clock_corrected': {
      const lapsed = lapse(job, fact.tick);
      const why = fact.type === 'lapsed' ? 'nothing had lapsed' : 'the clock had not run ahead';
      return lapsed.facts.length === 0 ? why : lapsed;
    }
    case 'retry_decided':
      return 'a policy decides to retry only together with the settlement of the attempt';
    default: {
      const lateReport = fact.type === 'reconciled' && fact.by === 'late_report';
      return lateReport ? 'a late report counts only together with its testimony' : command(job, fact, marks);
    }
  }
}

function command(job: Job, fact: CommandedFact, marks: EffectMarks): DecidedAgain | string {
  const decision = decide(job, commandOf(fact), marks.contextOf(job, fact), fact.tick);
  // A testimony is what a refused settlement leaves behind.
  if (!decision.accepted && fact.type !== 'testimony') return `core refuses it: ${decision.refused}`;
  return decision.facts.length === 0 ? 'it would have changed nothing' : decision;
}

/** The first field in which the recorded fact is not the one decided, or null. */
function difference(decided: Fact, recorded: Fact | undefined): string | null {
  if (recorded === undefined) return `${decided.type} should follow, and the history ends`;
  const given = new Map<string, unknown>(Object.entries(recorded));
  for (const [field, expected] of Object.entries(decided)) {
    const wanted = JSON.stringify(expected);
    const found = JSON.stringify(given.get(field));
    if (wanted !== found) return `${field} is ${found}, and replay gives ${wanted}`;
  }
  return null;
}
