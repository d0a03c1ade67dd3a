/** Definitions and openings for tests of the runtime, on a clock that only the test moves. */
import { onTestFinished } from 'vitest';
import { type Custody, type CustodyOptions, openCustody } from '../../src/runtime/custody.ts';
import type { StandardSchema } from '../../src/runtime/standard-schema.ts';
import { openMemoryStore } from '../../src/store/memory/index.ts';
import type { Store } from '../../src/store/store.ts';
import { type SimulatedClock, simulatedClock } from '../../src/testing/index.ts';

/** A schema that takes `{ n: number }` with a whole number. */
export const numbered: StandardSchema<{ n: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => {
      const n: unknown = typeof value === 'object' && value !== null && 'n' in value ? value.n : undefined;
      if (typeof n === 'number' && Number.isInteger(n)) return { value: { n } };
      return { issues: [{ message: 'must be a whole number', path: ['n'] }] };
    },
  },
};

export interface Opened {
  readonly custody: Custody;
  readonly time: SimulatedClock;
  readonly logged: { readonly level: string; readonly details: object; readonly message: string }[];
}

/** Custody on a memory store and a simulated clock; closed when the test is over. */
export async function open(options: CustodyOptions = {}): Promise<Opened> {
  const time = simulatedClock();
  const logged: Opened['logged'] = [];
  const at = (level: string) => (details: object, message: string) => {
    logged.push({ level, details, message });
  };
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  let ids = 0;
  const custody = await openCustody('memory:', {
    time,
    logger,
    random: () => 0.5,
    randomId: () => `id-${++ids}`,
    ...options,
  });
  onTestFinished(async () => {
    const closed = custody.close({ graceMs: 0 });
    await time.advance(1_000);
    await closed;
  });
  return { custody, time, logged };
}

/** A promise with its ends in hand, for handlers that end when the test says so. */
export function gate<Value = void>(): {
  readonly promise: Promise<Value>;
  readonly open: (value: Value) => void;
  readonly fail: (error: unknown) => void;
} {
  let open: (value: Value) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open, fail };
}

/** A memory store of which some verbs fail, wait or are watched. */
export function faultyStore(time: SimulatedClock, verbs: (store: Store) => Partial<Store>): Store {
  let ids = 0;
  const store: Store = openMemoryStore({
    clock: () => time.now(),
    clockName: 'unix',
    randomId: () => `stored-${++ids}`,
  });
  const faults = verbs(store);
  return new Proxy(store, {
    get(target, verb) {
      const own: unknown = Reflect.get(faults, verb) ?? Reflect.get(target, verb, target);
      return typeof own === 'function' ? (own.bind(target) as unknown) : own;
    },
  });
}
