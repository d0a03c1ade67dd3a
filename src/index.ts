/** `custody`: durable jobs with a chain of custody; what a program needs to declare, enqueue, run and inspect them. */
export { STATE, STATE_NAMES, type State } from './core/index.ts';
export {
  describe,
  EvidenceError,
  makeBundle,
  timelineOf,
  verifyBundle,
  verifyJob,
} from './evidence/index.ts';
export { AttemptAborted, LeaseLostError } from './runtime/abort.ts';
export type { JobContext, ReconcileContext, RunningJob } from './runtime/context.ts';
export { Custody, type CustodyOptions, type EnqueueOptions, openCustody } from './runtime/custody.ts';
export { defineJob, type JobDefinition } from './runtime/definition.ts';
export {
  CapacityExceededError,
  DeadlinePassedError,
  DefinitionChangedError,
  IdempotencyConflictError,
  JobFailedError,
  PayloadRefusedError,
  WaitTimeoutError,
} from './runtime/errors.ts';
export { type Outcome, outcome } from './runtime/outcome.ts';
export type { Logger, Worker, WorkerOptions } from './runtime/worker.ts';
export { CustodyError, InvalidInputError } from './store/errors.ts';
export { openMemoryStore } from './store/memory/index.ts';
export type { JobView, Store } from './store/store.ts';
