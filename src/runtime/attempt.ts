/** One attempt: calls the handler under custody, and makes one settlement of whatever it does, or of its silence. */
import { canonicalJson, type Job, limits, STATE } from '../core/index.ts';
import type { Delivery, JobView, Settlement, Store, StoreTransaction, Transacted } from '../store/store.ts';
import { type AbortReason, AttemptAborted, LeaseLostError } from './abort.ts';
import type { Time } from './clock.ts';
import type { CompensateContext, JobContext, ReconcileContext, RunningJob } from './context.ts';
import type { AnyDefinition, ReconcileAnswer } from './definition.ts';
import { isOutcome, type Outcome, outcome } from './outcome.ts';
import { readPayload } from './payload.ts';
import { reasonOf } from './reason.ts';

/** What an attempt needs of its worker. */
export interface AttemptHost {
  readonly store: Store;
  readonly time: Time;
  readonly worker: string;
  readonly log: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/** A settlement without the holder, which the attempt knows. */
type Report = Pick<Settlement, 'outcome' | 'report' | 'delayMs' | 'until' | 'neverCalled' | 'byUpgrade'>;
/** What became of an attempt: a report to settle with, or nothing more to say (it was decided in another commit). */
type Ended = Report | 'decided';

export class Attempt {
  readonly delivery: Delivery;
  readonly definition: AnyDefinition;
  readonly ended: Promise<Ended>;
  /** Trusted on the monotonic and the wall clock until these, whichever comes first. */
  trustedUntil: { monotonic: number; wall: number };
  #host: AttemptHost;
  #controller = new AbortController();
  #settle: (ended: Ended) => void = () => undefined;
  #timers: (() => void)[] = [];
  #called = false;
  #returned = false;
  #over = false;
  /** The handler still runs although the attempt is over. */
  zombie = false;
  /** The last that the handler told of its progress. */
  told: unknown = null;
  /** Told what the handler did after the attempt was over; null when it said nothing that can be believed. */
  onLate: (report: Report | null) => void = () => undefined;
  /** The job in question, when this attempt is an internal one. */
  #parent: JobView | null = null;

  constructor(
    delivery: Delivery,
    definition: AnyDefinition,
    host: AttemptHost,
    trustedUntil: { monotonic: number; wall: number },
  ) {
    this.delivery = delivery;
    this.definition = definition;
    this.#host = host;
    this.trustedUntil = trustedUntil;
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get holder(): { readonly id: number; readonly token: number } {
    return { id: this.delivery.job.id, token: this.delivery.job.token };
  }

  /** What is to be settled is known; the handler may still run. */
  get isOver(): boolean {
    return this.#over;
  }

  isTrusted(): boolean {
    const { time } = this.#host;
    return time.monotonic() < this.trustedUntil.monotonic && time.now() < this.trustedUntil.wall;
  }

  /** Starts the attempt; `ended` says how it ended. Never throws. */
  start(): void {
    this.#run()
      .finally(() => {
        this.#returned = true;
      })
      .then(
        (ended) => this.#end(ended),
        // A throw after the end is most likely the abort itself coming back: only what is named is believed then.
        (error: unknown) => this.#end(this.#over && !isOutcome(error) ? 'decided' : this.#thrown(error)),
      );
  }

  /**
   * Tells the handler to stop. A timeout, or the end of a shutdown's grace, does not wait for it to listen: the contract
   * says what its silence means. A lost lease leaves nothing to settle; what the handler then reports is a late report.
   */
  abort(reason: AbortReason): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(new AttemptAborted(reason));
    if (this.#over) return;
    if (reason === 'timeout') this.#end(this.#silent(`no answer within ${this.definition.timeoutMs} ms`));
    if (reason === 'lease_lost' || reason === 'deadline') this.#end('decided');
  }

  /** The grace of a shutdown is over and the handler has not answered. */
  giveUp(): void {
    if (this.#over) return;
    if (!this.#called)
      this.#end({ outcome: 'interrupted', report: 'shut down before it was started', neverCalled: true });
    else if (this.delivery.job.idempotent)
      this.#end({ outcome: 'interrupted', report: 'shut down without an answer' });
    else this.#end({ outcome: 'uncertain', report: 'shut down without an answer' });
  }

  #end(ended: Ended): void {
    if (this.#over) {
      this.zombie = false;
      this.onLate(ended === 'decided' ? null : ended);
      return;
    }
    this.#over = true;
    this.zombie = this.#called && !this.#returned;
    for (const cancel of this.#timers) cancel();
    this.#settle(ended);
  }

  async #run(): Promise<Ended> {
    const { job, payload: text } = this.delivery;
    const read = await readPayload(
      this.definition,
      job,
      this.#isInternal() ? await this.#parentPayload() : text,
    );
    // It was given back, or lost, while its payload was read.
    if (this.#over) return 'decided';
    if (!read.ok) return { outcome: 'refused', report: read.reason, byUpgrade: read.byUpgrade };
    // Asked right before the handler is called: the answer of the claim may have been long on its way.
    if (!this.isTrusted()) return { outcome: 'interrupted', report: 'custody was over', neverCalled: true };
    const { deadline } = job.submission;
    if (deadline !== null && this.#host.time.now() >= deadline) {
      return { outcome: 'interrupted', report: 'the deadline was reached', neverCalled: true };
    }
    this.#watchTime();
    this.#called = true;
    const running = this.#runningJob(read.payload);
    const ended = await (this.#isInternal() ? this.#callHook(running) : this.#callHandler(running));
    return ended;
  }

  #isInternal(): boolean {
    return this.delivery.job.submission.internal !== null;
  }

  async #parentPayload(): Promise<string> {
    const parentId = this.delivery.job.submission.internal?.parentId ?? 0;
    const parent = await this.#host.store.get(parentId);
    if (parent === null) throw outcome.permanent(`job ${parentId} is gone`);
    this.#parent = parent;
    return parent.payload;
  }

  #watchTime(): void {
    const { time } = this.#host;
    const { deadline } = this.delivery.job.submission;
    const { timeoutMs } = this.definition;
    if (timeoutMs !== null) this.#timers.push(time.after(timeoutMs, () => this.abort('timeout')));
    if (deadline !== null) {
      this.#timers.push(time.after(Math.max(0, deadline - time.now()), () => this.abort('deadline')));
    }
  }

  async #callHandler(job: RunningJob<unknown>): Promise<Report> {
    const result = await this.definition.options.run(job, this.#context());
    return isOutcome(result) ? reportOf(result) : succeeded(result);
  }

  async #callHook(job: RunningJob<unknown>): Promise<Ended> {
    const link = this.delivery.job.submission.internal;
    const options = this.definition.options;
    if (link?.purpose === 'reconcile') {
      if (options.reconcile === undefined)
        return { outcome: 'permanent', report: 'there is no reconciler any more' };
      const context: ReconcileContext = { ...this.#context(), lostToken: link.parentToken };
      return this.#decide(await options.reconcile(job, context));
    }
    if (options.compensate === undefined)
      return { outcome: 'permanent', report: 'there is no compensation any more' };
    const endedAs = this.#parent?.job.state === STATE.CANCELLED ? 'CANCELLED' : 'PERMANENT_FAILURE';
    const context: CompensateContext = { ...this.#context(), endedAs };
    const result: unknown = await options.compensate(job, context);
    return isOutcome(result) ? reportOf(result) : { outcome: 'succeeded', report: 'null' };
  }

  /** A definite answer decides the parent and settles this job in one commit; an answer that may not counts as unknown. */
  async #decide(answer: ReconcileAnswer): Promise<Ended> {
    const link = this.delivery.job.submission.internal;
    if (answer === 'unknown' || link === null)
      return { outcome: 'retryable', report: 'the reconciler does not know yet' };
    const { store, worker } = this.#host;
    const decided = await store.reconcile({
      id: link.parentId,
      token: link.parentToken,
      decision: answer,
      by: { actor: `reconciler:${this.definition.kind}`, reason: `answered ${answer}`, role: 'reconciler' },
      internal: { ...this.holder, worker },
    });
    if (decided.ok) return 'decided';
    const { refused } = decided;
    if (refused === 'stale_token' || refused === 'wrong_state' || refused === 'terminal') {
      return { outcome: 'succeeded', report: JSON.stringify(`the attempt was decided before: ${refused}`) };
    }
    return { outcome: 'retryable', report: `answered ${answer}, which was refused: ${refused}` };
  }

  #runningJob(payload: unknown): RunningJob<unknown> {
    // A hook is about its parent; its own job only carries the question.
    const { id, submission, occurrence } = this.#jobInQuestion();
    const { kind, queue, orderingKey, deadline } = submission;
    return { id, kind, payload, queue, orderingKey, deadline, occurrence };
  }

  #jobInQuestion(): Job {
    return this.#parent?.job ?? this.delivery.job;
  }

  #context(): JobContext {
    const { time, log } = this.#host;
    const { job } = this.delivery;
    const { submission, occurrence } = this.#jobInQuestion();
    return {
      signal: this.#controller.signal,
      attempt: job.attempt,
      delivery: job.delivery,
      deadline: job.submission.deadline,
      token: job.token,
      now: () => time.now(),
      effectKey: (name) => `custody:${submission.lineage}:${occurrence}:${name}`,
      log: (message, details = {}) => log(message, { ...details, job: job.id, attempt: job.attempt }),
      progress: (value) => {
        this.told = value;
      },
      commit: (key, descriptor, apply) => this.#commit(key, descriptor, apply),
      step: (key, options, run) => this.#step(key, options, run),
    };
  }

  async #commit<Result>(
    key: string,
    descriptor: unknown,
    apply: (tx: StoreTransaction) => Result,
  ): Promise<Result> {
    const committed = await this.#host.store.transact(this.holder, (tx) =>
      tx.commitEffect(key, descriptor, () => apply(tx)),
    );
    return this.#accepted(committed).result as Result;
  }

  async #step<Result>(
    key: string,
    options: { readonly idempotent: boolean; readonly descriptor?: unknown },
    run: (effectKey: string) => Promise<Result>,
  ): Promise<Result> {
    const { store } = this.#host;
    const { idempotent, descriptor = null } = options;
    const begun = await store.transact(this.holder, (tx) => tx.beginStep(key, { descriptor, idempotent }));
    // Begun before and not known to be done: running it again is what must not happen.
    if (!begun.ok && begun.refused === 'step_open')
      throw outcome.uncertain(`step ${key} was begun and not finished`);
    const mark = this.#accepted(begun);
    if (mark.status === 'done') return mark.result as Result;
    const result = await run(this.#context().effectKey(key));
    this.#accepted(await store.transact(this.holder, (tx) => tx.finishStep(key, result)));
    return result;
  }

  #accepted<Value>(answer: Transacted<Value>): Value {
    if (answer.ok) return answer.value;
    throw new LeaseLostError(answer.refused);
  }

  /** What an exception means: an outcome says it itself, and anything else is judged by the contract. */
  #thrown(error: unknown): Ended {
    if (isOutcome(error)) return reportOf(error);
    const report = reasonOf(error);
    if (!this.#called) return { outcome: 'interrupted', report, neverCalled: true };
    if (this.#isInternal() || this.delivery.job.idempotent) {
      const shutDown = abortedBy(this.#controller.signal) === 'shutdown';
      return { outcome: shutDown ? 'interrupted' : 'retryable', report };
    }
    return { outcome: this.definition.onThrow, report };
  }

  #silent(report: string): Report {
    const mayRunAgain = this.#isInternal() || this.delivery.job.idempotent;
    return { outcome: mayRunAgain ? 'retryable' : 'uncertain', report };
  }
}

function abortedBy(signal: AbortSignal): AbortReason | null {
  const reason: unknown = signal.reason;
  return reason instanceof AttemptAborted ? reason.reason : null;
}

function reportOf(named: Outcome): Report {
  return { outcome: named.outcome, report: named.message, delayMs: named.delayMs, until: named.until };
}

/** A result that does not survive JSON never undoes a success: it is left out, and what and where is said. */
function succeeded(result: unknown): Report {
  const bounds = { maxDepth: limits.resultDepthMax, maxBytes: limits.resultBytesMax };
  const canonical = canonicalJson(result ?? null, bounds);
  if (canonical.ok) return { outcome: 'succeeded', report: canonical.text };
  const omitted = { resultOmitted: canonical.path, problem: canonical.problem };
  return { outcome: 'succeeded', report: JSON.stringify(omitted) };
}
