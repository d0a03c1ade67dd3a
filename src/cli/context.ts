/** What a command is given of the world: nothing in `commands/` reads the process, so a test can be the world. */
import { setImmediate } from 'node:timers/promises';
import type { Inspection } from '../store/sqlite/doctor.ts';
import type { Store } from '../store/store.ts';
import { usage } from './errors.ts';
import type { Look, Sink } from './output.ts';
import { type Progress, startProgress } from './progress.ts';

/** Looks into the storage itself, beneath the verbs of a store. */
export interface Inspector {
  /** Ids of all jobs above `after` in order, also of rows that belong to no whole job. */
  ids(after: number, limit: number): readonly number[];
  /** What the doctor looks at. */
  inspect(options: { readonly full: boolean }): Inspection;
  close(): void;
}

/** How a store is opened. */
export interface OpenOptions {
  /** Make it when it is missing; without this a missing store is an error, so that a misspelt path is noticed. */
  readonly create: boolean;
  readonly warn: (message: string) => void;
}

export interface CliContext {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  /** Columns of the terminal on stdout. */
  readonly columns: number | null;
  /** Who is recorded as the actor when nobody else is named: `user@host`. */
  readonly user: string;
  readonly now: () => number;
  readonly randomId: () => string;
  /** Aborted when the command should end; its reason is an `Interrupted`. */
  readonly signal: AbortSignal;
  readonly openStore: (url: string, options: OpenOptions) => Promise<Store>;
  /** Opens what lies beneath a store without opening the store; null where there is no such thing. */
  readonly openInspector: (url: string) => Inspector | null;
  /** Asks on the error stream and answers the line that was typed. */
  readonly ask: (question: string) => Promise<string>;
}

/** Options every command has. */
export interface CommonOptions {
  readonly store?: string;
  readonly json?: boolean;
}

/** One run of one command. */
export interface Run<Options extends CommonOptions = CommonOptions> {
  readonly context: CliContext;
  readonly options: Options;
  readonly args: readonly string[];
  readonly json: boolean;
  readonly look: Look;
}

/** How output to this context looks. NO_COLOR, whatever its value, switches colours off. */
export function lookOf({ isTerminal, env, columns }: CliContext, stream: 'stdout' | 'stderr'): Look {
  const wanted = (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  return { colours: isTerminal[stream] && wanted, columns: isTerminal[stream] ? (columns ?? 80) : null };
}

/** The store that was named, by option or by environment. */
export function storeUrl({ options, context }: Run): string {
  const url = options.store ?? context.env['CUSTODY_STORE'] ?? '';
  if (url !== '') return url;
  throw usage('no store was named', 'Give --store sqlite:jobs.db, or set CUSTODY_STORE.');
}

/** Opens the store for as long as `work` runs. */
export async function withStore<Value>(
  run: Run,
  work: (store: Store) => Promise<Value>,
  options: { readonly create?: boolean } = {},
): Promise<Value> {
  const { context } = run;
  const warn = (message: string): void => {
    void context.stderr.write(run.json ? '' : `warning: ${message}\n`);
  };
  const store = await context.openStore(storeUrl(run), { create: options.create === true, warn });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Lets signals and the reader's going away be noticed: stores answer without ever yielding to the event loop. */
export async function breathe({ signal }: CliContext): Promise<void> {
  await setImmediate();
  signal.throwIfAborted();
}

/** Waits for what may never come, such as input, and ends when the command is told to. */
export async function unlessEnded<Value>({ signal }: CliContext, wait: Promise<Value>): Promise<Value> {
  signal.throwIfAborted();
  let stop: () => void = () => undefined;
  const ended = new Promise<never>((_resolve, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([wait, ended]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** A progress bar on the error stream, shown only when somebody is there to see it. */
export function progressOf({ context, json }: Run, what: string, total: number | null): Progress {
  const shown = context.isTerminal.stderr && !json && context.env['TERM'] !== 'dumb';
  return startProgress({ stderr: context.stderr, shown, now: context.now }, what, total);
}
