/** `custody/memory`: the store of the reference model, for tests, simulations and programs that may forget. */
export { type MemoryStore, openMemoryStore } from './memory-store.ts';
export type { MemoryStoreOptions } from './world.ts';
