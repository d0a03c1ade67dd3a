/** A world for the command line: a real SQLite file, a clock of its own, streams that are collected, a person who types. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { CliContext } from '../../src/cli/context.ts';
import { EXIT_TABLE, type ExitName } from '../../src/cli/exit.ts';
import { runCli } from '../../src/cli/program.ts';
import { openInspectorAt, openStoreAt } from '../../src/cli/store-url.ts';
import type { JobRequest } from '../../src/core/index.ts';
import type { Delivery, Store } from '../../src/store/store.ts';

/** What a command line came to. */
export interface Ran {
  readonly exit: ExitName | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** 2030-01-01T00:00:00Z. */
export const START = 1_893_456_000_000;

export class World {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'custody-cli-'));
  now = START;
  env: Record<string, string> = {};
  stdin: readonly string[] = [];
  /** What the person at the terminal types; null when there is no terminal. */
  types: string | null = null;
  colours = false;
  signal: AbortSignal = new AbortController().signal;
  /** Called before each write to stdout. */
  onWrite: (text: string) => void = () => undefined;
  questions: string[] = [];
  /** What happens while somebody is asked. */
  whileAsked: () => Promise<unknown> = async () => undefined;
  #serial = 0;

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  get path(): string {
    return join(this.folder, 'jobs.db');
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  /** Runs one command line on this world's store. */
  async run(...argv: readonly string[]): Promise<Ran> {
    const out: string[] = [];
    const err: string[] = [];
    const code = await runCli(argv, this.#context(out, err), '1.2.3');
    const exit = EXIT_TABLE.find((row) => row.code === code)?.name;
    return { exit, stdout: out.join(''), stderr: err.join('') };
  }

  /** Runs with `--json` and answers what was printed, which must be one JSON document. */
  async json(command: string, ...rest: readonly string[]): Promise<Record<string, unknown>> {
    const argv = [command, '--json', ...rest];
    const { stdout, stderr, exit } = await this.run(...argv);
    if (exit !== 'success' || stderr !== '') throw new Error(`${argv.join(' ')} ended ${exit}: ${stderr}`);
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  /** Works on the store as a program would. */
  async store<Value>(work: (store: Store) => Promise<Value>): Promise<Value> {
    const store = await openStoreAt(this.path, { create: true, warn: () => undefined }, this.#outside());
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  }

  #outside(): { clock: () => number; randomId: () => string } {
    return { clock: () => this.now, randomId: () => `id-${++this.#serial}-${this.now}` };
  }

  #context(out: string[], err: string[]): CliContext {
    const isTerminal = this.types !== null || this.colours;
    return {
      stdout: {
        write: async (text) => {
          this.onWrite(text);
          out.push(text);
        },
      },
      stderr: {
        write: async (text) => {
          err.push(text);
        },
      },
      stdin: (async function* (chunks) {
        yield* chunks;
      })(this.stdin),
      env: { CUSTODY_STORE: `sqlite:${this.path}`, ...this.env },
      isTerminal: { stdin: isTerminal, stdout: this.colours, stderr: isTerminal },
      columns: this.colours ? 100 : null,
      user: 'ada@engine',
      now: () => this.now,
      randomId: () => `id-${++this.#serial}`,
      signal: this.signal,
      openStore: (url, options) => openStoreAt(url, options, this.#outside()),
      openInspector: openInspectorAt,
      ask: async (question) => {
        this.questions.push(question);
        await this.whileAsked();
        return this.types ?? '';
      },
    };
  }
}

/** A world whose store exists and is empty. */
export async function newWorld(): Promise<World> {
  const world = new World();
  await world.store(async () => undefined);
  return world;
}

/** A job that says little. */
export function pay(options: Partial<JobRequest> = {}): JobRequest {
  return { kind: 'pay', revision: 1, payload: { cents: 700 }, idempotent: false, ...options };
}

let requests = 0;

/** Claims and begins up to `max` jobs as `worker`. */
export async function take(
  store: Store,
  options: {
    readonly max?: number;
    readonly worker?: string;
    readonly kind?: string;
    readonly idempotent?: boolean;
  } = {},
): Promise<readonly Delivery[]> {
  const { max = 1, worker = 'w-1', kind = 'pay', idempotent = false } = options;
  requests += 1;
  return store.claim({
    worker,
    leaseMs: 30_000,
    max,
    requestId: `request-${requests}`,
    definitions: [{ kind, revision: 1, idempotent }],
    begin: true,
  });
}

/** Enqueues a job and leaves it UNCERTAIN; answers its id and the token in question. */
export async function uncertainJob(
  world: World,
  options: Partial<JobRequest> = {},
): Promise<{ readonly id: number; readonly token: number }> {
  return world.store(async (store) => {
    await store.enqueue([pay(options)]);
    const [delivery] = await take(store, { kind: options.kind ?? 'pay' });
    if (delivery === undefined) throw new Error('nothing was claimed');
    const { id, token } = delivery.job;
    await store.settle([{ id, token, worker: 'w-1', outcome: 'uncertain', report: 'the answer was lost' }]);
    return { id, token };
  });
}

/** Enqueues a job and settles it; answers its id. */
export async function endedJob(
  world: World,
  outcome: 'succeeded' | 'permanent',
  options: Partial<JobRequest> = {},
  report = outcome === 'succeeded' ? '{"receipt":"r-1"}' : 'card closed',
): Promise<number> {
  return world.store(async (store) => {
    await store.enqueue([pay(options)]);
    const [delivery] = await take(store, { kind: options.kind ?? 'pay' });
    if (delivery === undefined) throw new Error('nothing was claimed');
    const { id, token } = delivery.job;
    await store.settle([{ id, token, worker: 'w-1', outcome, report }]);
    return id;
  });
}

/** The error a command printed as JSON. */
export function errorOf(ran: Ran): Readonly<Record<string, unknown>> {
  return (JSON.parse(ran.stderr) as { error: Record<string, unknown> }).error;
}

/** Everything a terminal would act on or hide. */
export const UNPRINTABLE: RegExp = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Fails when text holds anything but plain characters and line feeds. */
export function expectPlain(text: string): void {
  expect(UNPRINTABLE.exec(text.replaceAll('\n', ''))).toBeNull();
}

/** Matches text that contains `part`. */
export function containing(part: string): unknown {
  return expect.stringContaining(part);
}
