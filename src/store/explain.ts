/** Why a job is not running, in the words of the first gate that holds it back; the same gates that `decide` asks. */
import {
  type Context,
  decide,
  type Job,
  lapse,
  type Refusal,
  STATE_NAMES,
  stateHoldsLease,
} from '../core/index.ts';
import type { Explanation } from './store.ts';

/** What the store looked up about the job, all of it at one moment. */
export interface ExplainInput {
  readonly job: Job;
  readonly now: number;
  readonly context: Context;
  /** Oldest unresolved job of the lane. */
  readonly headId: number | null;
  readonly pausedBy: string | null;
}

/** Explains a job at `now`. Nothing is changed: a lapse that is due is only looked ahead at. */
export function explainJob(input: ExplainInput): Explanation {
  const { now, context } = input;
  const { job } = lapse(input.job, now);
  const probe = { type: 'claim', token: job.token + 1, worker: 'explain', leaseMs: 1 } as const;
  const decision = decide(job, probe, context, now);
  const reason = decision.accepted ? 'claimable' : decision.refused;
  const facts: Explanation['facts'] = {
    state: job.state,
    ...(reason === 'not_due' ? { dueAt: job.startAt } : {}),
    ...(reason === 'lane_blocked' && input.headId !== null ? { heldById: input.headId } : {}),
    ...(job.lease === null ? {} : { worker: job.lease.worker, leaseUntil: job.lease.expiresAt }),
    ...(reason === 'queue_paused' && input.pausedBy !== null ? { pausedBy: input.pausedBy } : {}),
    ...(reason === 'kind_unknown' || reason === 'revision_unknown'
      ? { boundRevision: job.submission.revision }
      : {}),
    ...(reason === 'revision_unknown' && context.claimer !== null
      ? { knownRevision: context.claimer.revision }
      : {}),
  };
  return { claimable: decision.accepted, reason, sentence: sentenceOf(job, reason, facts), facts };
}

function sentenceOf(job: Job, reason: Refusal | 'claimable', facts: Explanation['facts']): string {
  const { kind, queue, revision } = job.submission;
  switch (reason) {
    case 'claimable':
      return 'Nothing holds it back: it starts when a worker with a free slot asks.';
    case 'terminal':
      return `It ended as ${STATE_NAMES[job.state]}; redrive it if it should run again.`;
    case 'wrong_state':
      if (stateHoldsLease(job.state)) {
        return `It is ${STATE_NAMES[job.state]}: held by ${facts.worker} until tick ${facts.leaseUntil}.`;
      }
      return 'It is UNCERTAIN: nobody knows what its last attempt did; decide succeeded, failed or retry.';
    case 'not_due':
      return `It is not due before tick ${facts.dueAt}.`;
    case 'lane_blocked':
      return `Job ${facts.heldById} is older in the same lane and has to end first.`;
    case 'queue_paused':
      return `Queue ${queue} was paused by ${facts.pausedBy}.`;
    case 'kind_unknown':
      return `No definition of kind ${kind} was given; it needs a worker with revision ${revision} or newer.`;
    case 'revision_unknown':
      return `It is bound to revision ${revision} of ${kind}; the definition given is revision ${facts.knownRevision}.`;
    default:
      return `It cannot be claimed: ${reason}.`;
  }
}
