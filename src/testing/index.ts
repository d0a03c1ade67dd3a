/** `custody/testing`: what tests of programs need, and the suite every store must pass; no test framework needed. */

export { assertEnqueued, type PayloadMatcher } from './assert-enqueued.ts';
export {
  type Account,
  assertCase,
  type ConformanceCase,
  jsonAccount,
  type OpenedStore,
} from './conformance/harness.ts';
export { conformanceCases } from './conformance/index.ts';
export { type DrainOptions, drain } from './drain.ts';
export { type ManualClock, manualClock } from './manual-clock.ts';
export { type PastDelivery, type RanOnce, type RunOnceOptions, runOnce } from './run-once.ts';
export { type SimulatedClock, simulatedClock } from './simulated-clock.ts';
