/** Tells a job's history in plain sentences: every fact has one, and a name in it cannot pass for anything but a name. */
import type { Fact, ReconciledFact, RetryDecidedFact, SettledFact, StepVerdict } from '../core/facts.ts';
import { initialJob, type Submission } from '../core/job.ts';
import { STATE_NAMES, type State, type StateName } from '../core/states.ts';

/** How a tick is printed; the number itself by default. */
export type FormatTick = (tick: number) => string;

/** One moment of a job's history. */
export interface Moment {
  readonly tick: number;
  /** The state after it. */
  readonly state: StateName;
  readonly sentence: string;
}

/**
 * The whole history of a job, its admission first.
 *
 * @example
 * ```ts
 * for (const { tick, state, sentence } of timelineOf(job.submission, factsOf(chain))) console.log(tick, state, sentence);
 * ```
 */
export function timelineOf(
  submission: Submission,
  facts: readonly Fact[],
  format: FormatTick = String,
): readonly Moment[] {
  const admitted: Moment = {
    tick: submission.admittedAt,
    state: stateName(initialJob(0, submission).state),
    sentence: describeAdmission(submission, format),
  };
  const moment = (fact: Fact): Moment => ({
    tick: fact.tick,
    state: stateName(fact.to),
    sentence: describe(fact, format),
  });
  return [admitted, ...facts.map(moment)];
}

function describeAdmission(submission: Submission, format: FormatTick): string {
  const { kind, queue, orderingKey, startAt, deadline, internal, inherited } = submission;
  const lane = orderingKey === null ? '' : ` in lane ${shown(orderingKey)}`;
  const parent = internal === null ? '' : ` to ${internal.purpose} job ${internal.parentId}`;
  const origin = inherited === null ? '' : `, made again from job ${inherited.fromId}`;
  const limit = deadline === null ? '' : `, deadline ${format(deadline)}`;
  const where = `to queue ${shown(queue)}${lane}${parent}${origin}`;
  return `A ${shown(kind)} job was admitted ${where}, to start from ${format(startAt)}${limit}.`;
}

/**
 * One sentence about one fact: who, under which token, until when, and what became of the job. Characters of a name that
 * a terminal would act on or hide are shown as their code.
 *
 * @example
 * ```ts
 * describe(fact); // 'Worker w-1 took custody under token 12 until 31000: delivery 3.'
 * describe(fact, (tick) => new Date(tick).toISOString());
 * ```
 */
export function describe(fact: Fact, format: FormatTick = String): string {
  const until = fact.expiresAt === null ? '' : ` until ${format(fact.expiresAt)}`;
  switch (fact.type) {
    case 'claimed':
      return `Worker ${shown(fact.worker)} took custody under token ${fact.token}${until}: delivery ${fact.delivery}, ${
        fact.idempotent ? 'safe to run again' : 'not safe to run again'
      }.`;
    case 'begun':
      return `Worker ${shown(fact.worker)} began attempt ${fact.attempt} under token ${fact.token}, held${until}.`;
    case 'effect_committed':
      return `${holder(fact)} committed the effect ${shown(fact.key)}.`;
    case 'step_begun':
      return `${holder(fact)} began the external step ${shown(fact.key)}, ${
        fact.idempotent ? 'which may run again' : 'which must not run twice'
      }.`;
    case 'step_done':
      return `${holder(fact)} finished the external step ${shown(fact.key)}.`;
    case 'settled':
      return `${holder(fact)} reported ${fact.outcome}${detailOf(fact)}: ${outcomeOf(fact, format)}.`;
    case 'retry_decided':
      return `The policy decided to run the uncertain attempt of token ${fact.token} again: ${outcomeOf(fact, format)}.`;
    case 'lapsed': {
      const passed = fact.by === 'deadline' ? 'The deadline' : `The lease of token ${fact.token}`;
      return `${passed} ran out at ${format(fact.at)}: the job is ${stateName(fact.to)} (${fact.cause}).`;
    }
    case 'cancel':
      return stateName(fact.to) === 'CANCELLED'
        ? `${shown(fact.actor)} cancelled the job.`
        : `${shown(fact.actor)} asked to cancel the job, which stays ${stateName(fact.to)} until its next move.`;
    case 'reconciled':
      return `${decider(fact)} decided that the attempt of token ${fact.token} ${VERDICTS[fact.decision]}${stepsOf(
        fact.steps,
      )}: ${outcomeOf(fact, format)}.`;
    case 'promoted':
      return `${shown(fact.actor)} moved the start of the job to now.`;
    case 'testimony':
      return `${holder(fact)} reported ${fact.outcome} too late to settle the job; it is kept as testimony.`;
    case 'clock_corrected': {
      const lease = fact.expiresAt === null ? '' : `, the lease cut to end at ${format(fact.expiresAt)}`;
      return `The clock, which had run ahead to ${format(fact.from)}, was followed back to ${format(fact.tick)}${lease}.`;
    }
  }
}

const VERDICTS = {
  succeeded: 'succeeded',
  failed: 'did not happen and no longer can',
  retry: 'may run again',
} as const;

function holder(fact: { readonly worker: string; readonly token: number }): string {
  return `Worker ${shown(fact.worker)} under token ${fact.token}`;
}

function decider({ by, actor }: ReconciledFact): string {
  if (by === 'late_report') return `The late report of worker ${shown(actor)}`;
  return by === 'reconciler' ? `The reconciler (${shown(actor)})` : shown(actor);
}

function stepsOf(steps: readonly StepVerdict[]): string {
  const said = steps.map(
    ({ key, tookPlace }) => `step ${shown(key)} ${tookPlace ? 'took place' : 'did not take place'}`,
  );
  return said.length === 0 ? '' : ` (${said.join(', ')})`;
}

function detailOf(fact: SettledFact): string {
  if (fact.neverCalled) return ' before the handler was called';
  return fact.byUpgrade ? ' because no upgrade reads the payload' : '';
}

function outcomeOf(fact: SettledFact | ReconciledFact | RetryDecidedFact, format: FormatTick): string {
  const start = fact.startAt === null ? '' : `, to start from ${format(fact.startAt)}`;
  return `the job is ${stateName(fact.to)} (${fact.cause})${start}`;
}

function stateName(state: State): StateName {
  return STATE_NAMES[state] as StateName;
}

/** Control, formatting and separator characters as codes: names are data, yet they end up on terminals. */
function shown(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${codeOf(character)}}`);
}

function codeOf(character: string): string {
  return (character.codePointAt(0) as number).toString(16);
}
