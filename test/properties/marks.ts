/** What random histories reached, by name: a property over states that never occur proves nothing. */
import {
  ADMISSION_REFUSAL_TABLE,
  CAUSES,
  type Fact,
  OUTCOMES,
  REFUSAL_TABLE,
  STATE_NAMES,
} from '../../src/core/index.ts';
import { FACT_TYPES } from '../../src/evidence/index.ts';
import type { Step } from './step.ts';

/** Every way time may move a job: why, from which state, to which. */
const LAPSES = [
  'deadline: PENDING to DEAD_LETTERED',
  'deadline: SCHEDULED to DEAD_LETTERED',
  'deadline: LEASED to DEAD_LETTERED',
  'deadline: RUNNING to DEAD_LETTERED',
  'deadline: RUNNING to UNCERTAIN',
  'lease: LEASED to PENDING',
  'lease: RUNNING to PENDING',
  'lease: RUNNING to CANCELLED',
  'lease: RUNNING to DEAD_LETTERED',
  'lease: RUNNING to UNCERTAIN',
] as const;

/** Needs a thousand deliveries of one job: no random history gets there, and core's own tests do. */
const OUT_OF_REACH: ReadonlySet<string> = new Set(['cause: deliveries_exhausted']);

/** Everything that the histories together must reach. */
const REQUIRED: readonly string[] = [
  // Folded into SCHEDULED or PENDING in the same transition, so never stored.
  ...STATE_NAMES.filter((name) => name !== 'RETRYABLE_FAILURE').map((name) => `state: ${name}`),
  ...REFUSAL_TABLE.map(({ code }) => `refusal: ${code}`),
  ...ADMISSION_REFUSAL_TABLE.map(({ code }) => `admission: ${code}`),
  ...['created', 'duplicate', 'withheld'].map((status) => `admission: ${status}`),
  ...OUTCOMES.map((outcome) => `settled: ${outcome}`),
  ...FACT_TYPES.map((type) => `fact: ${type}`),
  ...CAUSES.map((cause) => `cause: ${cause}`),
  ...LAPSES.map((lapse) => `lapse by ${lapse}`),
  ...['reopen', 'restart', 'copy'].map((as) => `move: ${as}`),
  ...['reconcile', 'compensate'].map((purpose) => `internal: ${purpose}`),
  ...['clock: held', 'clock: followed', 'transaction: threw', 'settlement: duplicate', 'claim: oldest first'],
  ...[
    'job: redriven',
    'job: pruned',
    'job: next occurrence',
    'effect: known',
    'effect: fresh',
    'decided: late_report',
  ],
].filter((mark) => !OUT_OF_REACH.has(mark));

export class Marks {
  readonly reached: Map<string, number> = new Map();

  /** What was required and never reached. */
  missing(): readonly string[] {
    return REQUIRED.filter((mark) => !this.reached.has(mark));
  }

  note(step: Step): void {
    for (const { job } of step.after.values()) this.#add(`state: ${STATE_NAMES[job.state]}`);
    for (const [id, facts] of step.recorded) {
      let from = step.before.get(id)?.job.state;
      for (const fact of facts) {
        this.#noteFact(fact, from);
        from = fact.to;
      }
    }
    for (const [id, { job, redrivenTo }] of step.after) {
      const before = step.before.get(id);
      if (before === undefined && job.submission.internal !== null)
        this.#add(`internal: ${job.submission.internal.purpose}`);
      if (before !== undefined && before.redrivenTo !== redrivenTo) this.#add('job: redriven');
      if (before !== undefined && before.job.occurrence < job.occurrence) this.#add('job: next occurrence');
    }
    this.#noteCall(step);
  }

  #add(mark: string): void {
    this.reached.set(mark, (this.reached.get(mark) ?? 0) + 1);
  }

  #noteFact(fact: Fact, from: number | undefined): void {
    this.#add(`fact: ${fact.type}`);
    if ('cause' in fact) this.#add(`cause: ${fact.cause}`);
    if (fact.type === 'cancel') this.#add(fact.to === 7 ? 'cause: cancelled' : 'cause: cancel_requested');
    if (fact.type === 'settled') this.#add(`settled: ${fact.outcome}`);
    if (fact.type === 'reconciled') this.#add(`decided: ${fact.by}`);
    if (fact.type === 'claimed' && fact.token % 16 === 0) this.#add('claim: oldest first');
    if (fact.type === 'lapsed')
      this.#add(`lapse by ${fact.by}: ${STATE_NAMES[from ?? 5]} to ${STATE_NAMES[fact.to]}`);
  }

  #noteCall({ call }: Step): void {
    switch (call.verb) {
      case 'enqueue':
        for (const verdict of call.verdicts) {
          this.#add(`admission: ${verdict.status === 'refused' ? verdict.refused : verdict.status}`);
        }
        return;
      case 'begin':
      case 'settle':
        for (const verdict of call.verdicts) {
          if (!verdict.ok) this.#add(`refusal: ${verdict.refused}`);
          else if (verdict.duplicate && call.verb === 'settle') this.#add('settlement: duplicate');
        }
        return;
      case 'extend':
        for (const verdict of call.verdicts)
          if (verdict.status === 'lost') this.#add(`refusal: ${verdict.refused}`);
        return;
      case 'transact':
        if (call.answer === 'threw') this.#add('transaction: threw');
        else if (!call.answer.ok) this.#add(`refusal: ${call.answer.refused}`);
        for (const mark of call.marked)
          if (mark.type === 'commit') this.#add(`effect: ${mark.known ? 'known' : 'fresh'}`);
        return;
      case 'cancel':
      case 'promote':
      case 'dismiss':
      case 'reconcile':
      case 'redrive':
        if (!call.verdict.ok) this.#add(`refusal: ${call.verdict.refused}`);
        return;
      case 'look':
        for (const reason of call.explained.values()) this.#add(`refusal: ${reason}`);
        return;
      case 'move':
        this.#add(`move: ${call.as}`);
        return;
      case 'clock':
        this.#add(call.seen < call.floor ? 'clock: followed' : 'clock: held');
        return;
      case 'prune':
        if (call.pruned.jobs > 0) this.#add('job: pruned');
        return;
      default:
        return;
    }
  }
}
