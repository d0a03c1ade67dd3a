/** What a backend gives the conformance suite, and the runner: after every case all evidence and invariants are checked. */
import type { ApplicationState, Store } from '../../store/store.ts';
import type { ManualClock } from '../manual-clock.ts';
import { codeOf } from './check.ts';
import { checkCopy, checkStore } from './invariants.ts';

/** Money the program keeps in the store's own database, as far as the suite has to touch it. */
export interface Account {
  /** Adds cents to the balance, inside a transaction. */
  add(application: ApplicationState, cents: number): void;
  /** The balance as this transaction sees it, 0 at first. */
  read(application: ApplicationState): number;
}

/** An empty store of the backend under test, which has given out no id and no token yet, with the clock it reads. */
export interface OpenedStore {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly account: Account;
  /** Restarts as the backend restarts: everything answered must be there, and the old handle is dead. */
  reopen(): Promise<OpenedStore>;
  /** A second, empty store of the same backend with the same clock. */
  fresh(): Promise<OpenedStore>;
  close(): Promise<void>;
}

/** One claim about a verb, with the run that would show it false. */
export interface ConformanceCase {
  readonly verb: string;
  readonly claim: string;
  run(opened: OpenedStore): Promise<void>;
}

/** The account of a store whose application state is plain JSON. */
export const jsonAccount: Account = {
  add(application, cents) {
    application['balance'] = jsonAccount.read(application) + cents;
  },
  read(application) {
    const balance = application['balance'];
    return typeof balance === 'number' ? balance : 0;
  },
};

/** Cases of one verb from runs by their claim. */
export function casesOf(
  verb: string,
  runs: Readonly<Record<string, (opened: OpenedStore) => Promise<void>>>,
): readonly ConformanceCase[] {
  return Object.entries(runs).map(([claim, run]) => ({ verb, claim, run }));
}

/**
 * Runs a case and then checks every store it opened and left open: the evidence of every job must verify, no invariant
 * may be broken, and a copy of it must hold the same. Closes all of them, whatever happens.
 *
 * @example
 * ```ts
 * for (const one of conformanceCases) test(`${one.verb}: ${one.claim}`, () => assertCase(one, open));
 * ```
 */
export async function assertCase(one: ConformanceCase, open: () => Promise<OpenedStore>): Promise<void> {
  const alive = new Set<OpenedStore>();
  try {
    await one.run(watched(await open(), alive));
    for (const opened of [...alive]) await checkUnlessClosed(opened, alive);
  } finally {
    for (const opened of [...alive].reverse()) await opened.close();
  }
}

/** The same store, remembered for as long as it is open. */
function watched(opened: OpenedStore, alive: Set<OpenedStore>): OpenedStore {
  alive.add(opened);
  return {
    ...opened,
    async reopen() {
      const next = await opened.reopen();
      alive.delete(opened);
      return watched(next, alive);
    },
    async fresh() {
      return watched(await opened.fresh(), alive);
    },
    async close() {
      await opened.close();
      alive.delete(opened);
    },
  };
}

async function checkUnlessClosed(opened: OpenedStore, alive: Set<OpenedStore>): Promise<void> {
  const { store } = opened;
  try {
    await store.counts();
  } catch (error) {
    if (codeOf(error) === 'store_closed') return;
    throw error;
  }
  await checkStore(store);
  const copy = await opened.fresh();
  alive.add(copy);
  await checkCopy(store, copy.store);
}
