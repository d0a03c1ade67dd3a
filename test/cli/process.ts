/** Runs the built command line as a process of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that may still run. */
export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  /** Resolves when stdout or stderr holds the text. */
  readonly said: (text: string) => Promise<void>;
}

/** The built `main.js`. */
export function binary(): string {
  return join(inject('built'), 'cli/main.js');
}

/** Starts `custody` with these arguments; it does not outlive the test. */
export function start(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  return startCommand(process.execPath, [binary(), ...argv], env);
}

export function startCommand(
  command: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Started {
  const child = spawn(command, argv, { env: { ...process.env, CUSTODY_STORE: '', ...env } });
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  const heard = (): void => {
    for (const listener of listeners) listener();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    heard();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    heard();
  });
  child.stdin.on('error', () => undefined);
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout,
    stderr,
  }));
  return {
    child,
    ended,
    said: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!stdout.includes(text) && !stderr.includes(text)) return;
          listeners.delete(look);
          resolve();
        };
        listeners.add(look);
        look();
        void ended.then(() => reject(new Error(`it ended without saying ${text}: ${stdout}${stderr}`)));
      }),
  };
}

/** Runs `custody` to its end. */
export async function run(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { child, ended } = start(argv, env);
  child.stdin.end();
  return ended;
}
