import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { binary, run, type Started, start, startCommand } from './process.ts';
import { newWorld, pay, type World } from './world.ts';

async function filledWorld(jobs: number): Promise<World & { readonly env: { CUSTODY_STORE: string } }> {
  const world = await newWorld();
  await world.store((store) => store.enqueue(Array.from({ length: jobs }, () => pay())));
  return Object.assign(world, { env: { CUSTODY_STORE: world.path } });
}

describe('the installed command', () => {
  test('it prints the version of its package', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await run(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('the file is a script that the system can start', () => {
    expect(readFileSync(binary(), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  test.each([
    ['usage', ['jobs', '--no-such-option']],
    ['usage', []],
    ['not_found', ['show', '99']],
    ['storage', ['jobs', '--store', '/no/such/folder/jobs.db']],
    ['refused', ['promote', '1']],
    ['usage', ['cancel', '1', '--reason', 'r']],
    ['unsound', ['verify-bundle', 'package.json']],
    ['success', ['jobs']],
  ] as const)(
    'a process ends with the code of %s for %j, and prints errors on stderr only',
    async (exit, argv) => {
      const { env } = await filledWorld(1);
      const ended = await run(argv, env);
      expect({ code: ended.code, signal: ended.signal }).toEqual({ code: EXIT[exit], signal: null });
      expect(ended.stdout === '').toBe(exit !== 'success' && exit !== 'unsound');
      expect(ended.stderr === '').toBe(exit === 'success');
    },
  );
});

describe('a reader that goes away', () => {
  test('it ends a long output quietly, with its own code', async () => {
    const { env } = await filledWorld(3_000);
    const { child, ended } = start(['snapshot'], env);
    child.stdout.once('data', () => child.stdout.destroy());
    expect(await ended).toMatchObject({ code: EXIT.closed_pipe, signal: null, stderr: '' });
  });

  test('it ends a short output quietly, with its own code', async () => {
    const { env } = await filledWorld(1);
    const { child, ended } = start(['jobs'], env);
    child.stdout.destroy();
    expect(await ended).toMatchObject({ code: EXIT.closed_pipe, signal: null, stderr: '' });
  });

  test('it stops a bulk act that reports to nobody, and what was done is stored whole', async () => {
    const world = await filledWorld(200);
    const { child, ended } = start(['cancel', '--all', '--reason', 'r', '--yes'], world.env);
    child.stdout.destroy();
    expect((await ended).code).toBe(EXIT.closed_pipe);
    expect(await world.json('verify')).toMatchObject({ ok: true, jobs: 200 });
  });

  test('an output that cannot be written is not a success', async () => {
    const { env } = await filledWorld(1);
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [binary(), 'jobs'], {
      env: { ...process.env, ...env },
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(full);
    expect(status).toBe(EXIT.storage);
    expect(stderr).toContain('cannot be written');
  });
});

describe('signals', () => {
  /** Once more than a pipe holds was taken, the process reads and listens. */
  async function readingInput(argv: readonly string[], text: string): Promise<ReturnType<typeof start>> {
    const { env } = await filledWorld(0);
    const started = start(argv, env);
    await new Promise<void>((resolve) => {
      started.child.stdin.write(text, () => resolve());
    });
    return started;
  }

  test.each([
    ['SIGINT', 'interrupted'],
    ['SIGTERM', 'terminated'],
  ] as const)('%s ends a command that waits for input, with the code of %s', async (signal, exit) => {
    const line = `${JSON.stringify({ snapshot: { text: 'x'.repeat(500_000) } })}\n`;
    const { child, ended } = await readingInput(['restore', '--as', 'copy', '--yes'], line);
    child.kill(signal);
    expect(await ended).toMatchObject({ code: EXIT[exit], signal: null, stdout: '' });
  });

  test('a payload that never ends does not keep an interrupted process', async () => {
    const { child, ended } = await readingInput(
      ['enqueue', 'pay', '--payload', '-', '--json'],
      ' '.repeat(500_000),
    );
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).toBe(EXIT.interrupted);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'interrupted', exit: EXIT.interrupted } });
  });
});

describe('a person at a terminal', () => {
  /** A real terminal, as `script` makes one; what is written to its input is typed. */
  function atTerminal(argv: string, env: Readonly<Record<string, string>>): Started {
    return startCommand('script', ['-qec', `'${process.execPath}' '${binary()}' ${argv}`, '/dev/null'], env);
  }

  test('is asked, and what they confirm by typing the word is done', async () => {
    const world = await filledWorld(1);
    const { child, ended, said } = atTerminal('cancel 1 --reason r', world.env);
    await said('Type yes to go on: ');
    child.stdin.write('yes\r');
    expect(await ended).toMatchObject({ code: 0 });
    expect((await world.json('show', '1'))['job']).toMatchObject({ state: 'CANCELLED' });
  });

  test.each([
    ['Ctrl-C', '\u0003', 'interrupted'],
    ['the end of the input', '\u0004', 'usage'],
    ['another word', 'y\r', 'usage'],
  ] as const)(
    'who answers with %s does not confirm, and the code is no success',
    async (_name, typed, exit) => {
      const world = await filledWorld(1);
      const { child, ended, said } = atTerminal('cancel 1 --reason r', world.env);
      await said('Type yes to go on: ');
      child.stdin.write(typed);
      expect(await ended).toMatchObject({ code: EXIT[exit] });
      expect((await world.json('show', '1'))['job']).toMatchObject({ state: 'PENDING' });
    },
  );
});

test('two processes that make one store at one time both succeed', async () => {
  const world = await newWorld();
  const url = `sqlite:${world.file('new.db')}`;
  const ended = await Promise.all(Array.from({ length: 4 }, () => run(['migrate', '--store', url])));
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  expect((await run(['doctor', '--store', url])).code).toBe(0);
});
