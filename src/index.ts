/** `custody`: durable jobs with a chain of custody; what a program needs to put jobs into a store and to read them. */
export { type JobRequest, limits, STATE, STATE_NAMES, type State } from './core/index.ts';
export { describe, makeBundle, timelineOf, verifyBundle, verifyJob } from './evidence/index.ts';
export {
  CustodyError,
  InvalidInputError,
  SnapshotRefusedError,
  StoreClosedError,
  StoreSealedError,
} from './store/errors.ts';
export type { MemoryStoreOptions } from './store/memory/index.ts';
export { type MemoryStore, openMemoryStore } from './store/memory/index.ts';
export type { Snapshot } from './store/snapshot.ts';
export type { Delivery, Holder, JobView, Settlement, Store, StoreTransaction } from './store/store.ts';
