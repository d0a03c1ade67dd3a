/** Turns a recorded fact back into the command it states, so that the same function that decided it decides it again. */
import type { Command, Context } from '../core/commands.ts';
import type { ClockCorrectedFact, Fact, LapsedFact, RetryDecidedFact, SettledFact } from '../core/facts.ts';
import type { Job } from '../core/job.ts';

/** Facts that a command leads to; the others come of time passing, or together with one of these. */
export type CommandedFact = Exclude<Fact, LapsedFact | ClockCorrectedFact | RetryDecidedFact>;

/** A report that names nothing but its outcome: of a testimony no more was kept, and no more counts. */
const BARE_REPORT = {
  delayMs: null,
  jitterMs: 0,
  until: null,
  neverCalled: false,
  byUpgrade: false,
} as const;

/** The command that a fact states. An operator's version was looked at before and is not recorded. */
export function commandOf(fact: CommandedFact): Command {
  switch (fact.type) {
    case 'claimed': {
      const leaseMs = (fact.expiresAt ?? fact.tick) - fact.tick;
      return { type: 'claim', token: fact.token, worker: fact.worker, leaseMs };
    }
    case 'begun':
      return { type: 'begin', token: fact.token };
    case 'effect_committed': {
      const { token, key, descriptor, result } = fact;
      return { type: 'commit_effect', token, key, descriptor, result };
    }
    case 'step_begun': {
      const { token, key, descriptor, idempotent } = fact;
      return { type: 'begin_step', token, key, descriptor, idempotent };
    }
    case 'step_done':
      return { type: 'finish_step', token: fact.token, key: fact.key, result: fact.result };
    case 'settled':
    case 'testimony': {
      const { token, worker, outcome, digest } = fact;
      return { type: 'settle', token, worker, outcome, digest, ...reportOf(fact) };
    }
    case 'cancel':
      return { type: 'cancel', actor: fact.actor, reason: fact.reason, version: null };
    case 'promoted':
      return { type: 'promote', actor: fact.actor, reason: fact.reason, version: null };
    case 'reconciled': {
      const { token, decision, by, actor, reason, steps } = fact;
      return { type: 'reconcile', token, decision, by, actor, reason, steps, version: null };
    }
  }
}

function reportOf(
  fact: CommandedFact,
): Pick<SettledFact, 'delayMs' | 'jitterMs' | 'until' | 'neverCalled' | 'byUpgrade'> {
  if (fact.type !== 'settled') return BARE_REPORT;
  const { delayMs, jitterMs, until, neverCalled, byUpgrade } = fact;
  return { delayMs, jitterMs, until, neverCalled, byUpgrade };
}

/**
 * Keys of effects and steps that the history itself shows to be done in the current occurrence. A key belongs to one
 * effect, so a second mark under it is refused by core as it was when the first was stored.
 */
export class EffectMarks {
  readonly #done = new Set<string>();

  /** What only the store knew when the fact was decided: as the fact implies, but for the marks the history shows. */
  contextOf(job: Job, fact: CommandedFact): Context {
    const marked =
      (fact.type === 'effect_committed' || fact.type === 'step_begun') && this.#done.has(fact.key);
    return {
      laneHead: true,
      queuePaused: false,
      claimer: {
        revision: job.submission.revision,
        idempotent: fact.type === 'claimed' && fact.idempotent,
      },
      effect: marked ? { descriptor: fact.descriptor, result: null } : null,
    };
  }

  note(fact: Fact): void {
    if (fact.type === 'effect_committed' || fact.type === 'step_done') this.#done.add(fact.key);
    if (fact.type === 'reconciled') {
      for (const { key, tookPlace } of fact.steps) if (tookPlace) this.#done.add(key);
    }
    const occurrenceEnds = fact.type === 'settled' || fact.type === 'reconciled';
    if (occurrenceEnds && fact.cause === 'recurrence') this.#done.clear();
  }
}
