#!/usr/bin/env node
/** The `custody` command: the one place that touches the process, its streams, its signals and its exit code. */
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import type { Writable } from 'node:stream';
import { systemClock } from '../runtime/clock.ts';
import type { CliContext } from './context.ts';
import { CliError, Interrupted } from './errors.ts';
import { EXIT } from './exit.ts';
import type { Sink } from './output.ts';
import { runCli } from './program.ts';
import { openInspectorAt, openStoreAt } from './store-url.ts';

const ended = new AbortController();

/** What the output was lost to; it decides the exit code, whatever came of the command. */
let lost: CliError | Interrupted | null = null;

/** A stream as a sink. Once it cannot be written any more, the command is told to end and nothing more is written. */
function sinkOf(stream: Writable): Sink {
  let closed = false;
  const fail = (error: NodeJS.ErrnoException): void => {
    closed = true;
    lost ??= error.code === 'EPIPE' ? new Interrupted('closed_pipe') : outputFailed(error);
    ended.abort(lost);
  };
  stream.on('error', fail);
  return {
    write: async (text) => {
      if (closed || text === '') return;
      await new Promise<void>((resolve) => {
        stream.write(text, (error) => {
          if (error) fail(error);
          resolve();
        });
      });
    },
  };
}

function outputFailed(error: Error): CliError {
  const next = 'The output is incomplete; free space or write elsewhere.';
  return new CliError('storage', 'output_failed', `the output cannot be written: ${error.message}`, next);
}

function listenToSignals(): void {
  let signalled = false;
  const stop = (exit: 'interrupted' | 'terminated') => (): void => {
    if (signalled) process.exit(EXIT.forced);
    signalled = true;
    ended.abort(new Interrupted(exit));
  };
  process.on('SIGINT', stop('interrupted'));
  process.on('SIGTERM', stop('terminated'));
}

/** Asks at the terminal. An end of the input is an empty answer; Ctrl-C there is the signal it is everywhere else. */
async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  lines.on('SIGINT', () => ended.abort(new Interrupted('interrupted')));
  const closed = new Promise<string>((resolve) => {
    lines.once('close', () => resolve(''));
  });
  try {
    return await Promise.race([lines.question(question, { signal: ended.signal }), closed]);
  } catch (error) {
    ended.signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}

function user(): string {
  const { env } = process;
  const name = env['USER'] ?? env['LOGNAME'] ?? nameOfUser();
  return `${name === '' ? 'unknown' : name}@${hostname()}`;
}

/** A container's user may have no name. */
function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}

async function main(): Promise<void> {
  listenToSignals();
  const outside = { clock: systemClock, randomId: randomUUID };
  const context: CliContext = {
    stdout: sinkOf(process.stdout),
    stderr: sinkOf(process.stderr),
    stdin: process.stdin,
    env: process.env,
    isTerminal: {
      stdin: process.stdin.isTTY === true,
      stdout: process.stdout.isTTY === true,
      stderr: process.stderr.isTTY === true,
    },
    columns: process.stdout.isTTY === true ? process.stdout.columns : null,
    user: user(),
    now: systemClock,
    randomId: randomUUID,
    signal: ended.signal,
    openStore: (url, options) => openStoreAt(url, options, outside),
    openInspector: openInspectorAt,
    ask,
  };
  const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };
  const code = await runCli(process.argv.slice(2), context, version);
  if (lost instanceof CliError && code === EXIT.success)
    await context.stderr.write(`custody: ${lost.message}\n`);
  // Whatever a module that was loaded keeps open must not keep the process.
  process.exit(lost === null ? code : EXIT[lost.exit]);
}

void main();
