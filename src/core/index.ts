/** `custody/core`: the pure decisions of Custody; they read no clock, draw no chance, and never throw on their inputs. */
export * from './admission.ts';
export * from './cancellation.ts';
export * from './canonical.ts';
export * from './commands.ts';
export * from './consequences.ts';
export * from './decide.ts';
export * from './definitions.ts';
export * from './facts.ts';
export * from './identity.ts';
export * from './job.ts';
export { cutLease, type Lapse, lapse } from './lapse.ts';
export * from './lease.ts';
export * from './limits.ts';
export * from './ordering.ts';
export * from './redrive.ts';
export * from './refusal.ts';
export {
  type Asked,
  type JobRequest,
  nameProblem,
  type Problem,
  plainFields,
  readRequest,
} from './request.ts';
export * from './retry.ts';
export * from './revision.ts';
export * from './schedule.ts';
export * from './states.ts';
export * from './ticks.ts';
export * from './uncertainty.ts';
