/** `custody/testing`: a clock that only the test moves, and the suite every store must pass; no test framework needed. */

export {
  type Account,
  assertCase,
  type ConformanceCase,
  jsonAccount,
  type OpenedStore,
} from './conformance/harness.ts';
export { conformanceCases } from './conformance/index.ts';
export { type ManualClock, manualClock } from './manual-clock.ts';
export { type SimulatedClock, simulatedClock } from './simulated-clock.ts';
