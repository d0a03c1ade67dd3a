import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, inject, test } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { binary, type Ended, run, type Started, start, startCommand } from './process.ts';
import { newWorld, type World } from './world.ts';

/** Jobs of every temper; handlers say on stdout when they are called. */
function moduleText(version = 'a'): string {
  return `
import { defineJob } from ${JSON.stringify(`${inject('built')}/runtime/definition.js`)};
const payload = { '~standard': { version: 1, vendor: 'test', validate: (value) =>
  value.n > 0 ? { value } : { issues: [{ path: ['n'], message: 'must be above 0' }] } } };
const job = (kind, idempotent, run) =>
  defineJob({ kind, revision: 1, payload, schemaVersion: ${JSON.stringify(version)}, idempotent, queue: kind + 's',
    orderingKey: ({ lane }) => lane ?? null, reconcileAfter: '1d',
    run: async (one, context) => { process.stdout.write('called ' + kind + '\\n'); return run(one, context); } });
export const note = job('note', true, async ({ payload }) => ({ twice: payload.n * 2 }));
export default [
  note,
  job('brief', false, () => new Promise((resolve) => { setTimeout(() => resolve('in time'), 400); })),
  job('deaf', false, () => new Promise((resolve) => { setTimeout(resolve, 600_000); })),
];
export const unrelated = { kind: 'nothing' };
`;
}

async function workWorld(): Promise<{
  readonly world: World;
  readonly file: string;
  readonly env: { CUSTODY_STORE: string };
}> {
  const world = await newWorld();
  const file = world.file('jobs.mjs');
  writeFileSync(file, moduleText());
  return { world, file, env: { CUSTODY_STORE: `sqlite:${world.path}` } };
}

async function stateOf(env: { CUSTODY_STORE: string }, id: number): Promise<unknown> {
  const { stdout } = await run(['show', `${id}`, '--json'], env);
  return (JSON.parse(stdout) as { job: { state: unknown } }).job.state;
}

/** Asks until the job is in the state: its worker, and its lease, take their time. */
async function untilState(env: { CUSTODY_STORE: string }, id: number, state: string): Promise<void> {
  for (;;) {
    if ((await stateOf(env, id)) === state) return;
  }
}

async function startWorking(argv: readonly string[], env: { CUSTODY_STORE: string }): Promise<Started> {
  const started = start(['work', ...argv], env);
  await started.said('works on');
  return started;
}

function enqueue(env: { CUSTODY_STORE: string }, kind: string, file: string): Promise<Ended> {
  return run(['enqueue', kind, '--file', file, '--payload', '{"n":2}'], env);
}

describe('a worker', () => {
  test('a job enqueued by its definition is not left undone, and its policy is that of the definition', async () => {
    const { file, env } = await workWorld();
    const argv = ['enqueue', 'note', '--file', file, '--payload', '{"n":2,"lane":"alice"}', '--json'];
    expect(JSON.parse((await run(argv, env)).stdout)).toEqual({ status: 'created', id: 1, ignored: [] });
    const { child, ended } = await startWorking([file], env);
    await untilState(env, 1, 'SUCCEEDED');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null });
    const { stdout } = await run(['show', '1', '--json'], env);
    expect(JSON.parse(stdout)).toMatchObject({
      report: '{"twice":4}',
      job: { queue: 'notes', orderingKey: 'alice', idempotent: true },
      verification: { ok: true },
    });
  });

  test('a job that arrives from another process while it idles is not left undone', async () => {
    const { file, env } = await workWorld();
    const { child, ended, said } = await startWorking([file], env);
    await enqueue(env, 'note', file);
    await said('called note');
    child.kill('SIGINT');
    expect((await ended).code).toBe(0);
  });

  test('it does not touch queues it was not given', async () => {
    const { file, env } = await workWorld();
    await enqueue(env, 'brief', file);
    await enqueue(env, 'note', file);
    const { child, ended, said } = await startWorking([file, '--queue', 'notes', '--concurrency', '1'], env);
    await said('called note');
    child.kill('SIGTERM');
    await ended;
    expect(await stateOf(env, 1)).toBe('PENDING');
  });

  test('every line it prints with --json is JSON, but for what handlers print themselves', async () => {
    const { file, env } = await workWorld();
    const started = start(['work', file, '--json'], env);
    await started.said('"started"');
    started.child.kill('SIGTERM');
    const { stdout, stderr } = await started.ended;
    expect(stderr).toBe('');
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string });
    expect(events.map(({ event }) => event).filter((event) => event !== 'log')).toEqual([
      'started',
      'stopping',
      'stopped',
    ]);
  });

  test('what has no definition in the file is not enqueued, nor what its schema refuses', async () => {
    const { file, env } = await workWorld();
    expect((await enqueue(env, 'other', file)).code).toBe(EXIT.usage);
    expect((await run(['enqueue', 'note', '--file', file, '--payload', '{"n":0}'], env)).code).toBe(
      EXIT.usage,
    );
    const argv = ['enqueue', 'note', '--file', file, '--payload', '{"n":1}', '--idempotent'];
    expect((await run(argv, env)).code).toBe(EXIT.usage);
    const keyed = (n: number): string[] => [
      'enqueue',
      'note',
      '--file',
      file,
      '--payload',
      `{"n":${n}}`,
      '--key',
      'k',
    ];
    expect((await run(keyed(1), env)).code).toBe(0);
    expect((await run(keyed(2), env)).code).toBe(EXIT.refused);
  });
});

describe('a worker that may not start', () => {
  test('is told so by its exit code, whatever is wrong with its file', async () => {
    const { world, file, env } = await workWorld();
    expect((await run(['work', world.file('none.mjs')], env)).code).toBe(EXIT.not_found);
    writeFileSync(world.file('empty.mjs'), 'export const x = 1;');
    expect((await run(['work', world.file('empty.mjs')], env)).code).toBe(EXIT.usage);
    writeFileSync(world.file('throws.mjs'), 'throw new Error("not \\u001b[31mtoday");');
    const thrown = await run(['work', world.file('throws.mjs'), '--json'], env);
    expect(thrown.code).toBe(EXIT.usage);
    expect(JSON.parse(thrown.stderr)).toMatchObject({ error: { code: 'module_failed' } });
    const { child, ended } = await startWorking([file], env);
    child.kill('SIGTERM');
    await ended;
    writeFileSync(world.file('changed.mjs'), moduleText('b'));
    const changed = await run(['work', world.file('changed.mjs'), '--json'], env);
    expect(changed.code).toBe(EXIT.refused);
    expect(JSON.parse(changed.stderr)).toMatchObject({ error: { code: 'definition_changed' } });
  });
});

describe('a worker that is told to stop', () => {
  test('does not cut off a handler that ends within the grace', async () => {
    const { file, env } = await workWorld();
    await enqueue(env, 'brief', file);
    const { child, ended, said } = await startWorking([file], env);
    await said('called brief');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null });
    expect(await stateOf(env, 1)).toBe('SUCCEEDED');
  });

  test('does not wait for ever for a handler that is deaf, does not call it done, and says so by its code', async () => {
    const { file, env } = await workWorld();
    await enqueue(env, 'deaf', file);
    const { child, ended, said } = await startWorking([file, '--grace', '100ms'], env);
    await said('called deaf');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: EXIT.unclean_stop, signal: null });
    expect(await stateOf(env, 1)).toBe('UNCERTAIN');
  });

  test('ends at once on a second signal, with a code of its own; nothing is lost', async () => {
    const { file, env } = await workWorld();
    await enqueue(env, 'deaf', file);
    const { child, ended, said } = await startWorking([file, '--lease', '500ms'], env);
    await said('called deaf');
    child.kill('SIGTERM');
    await said('stopping');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: EXIT.forced, signal: null });
    expect(['RUNNING', 'UNCERTAIN']).toContain(await stateOf(env, 1));
    const next = await startWorking([file], env);
    await untilState(env, 1, 'UNCERTAIN');
    next.child.kill('SIGTERM');
    expect((await next.ended).code).toBe(0);
  });

  test('by SIGKILL leaves its jobs to the lease, and another worker finds them', async () => {
    const { file, env } = await workWorld();
    await enqueue(env, 'deaf', file);
    const { child, ended, said } = await startWorking([file, '--lease', '500ms'], env);
    await said('called deaf');
    child.kill('SIGKILL');
    expect((await ended).signal).toBe('SIGKILL');
    const next = await startWorking([file], env);
    await untilState(env, 1, 'UNCERTAIN');
    next.child.kill('SIGTERM');
    await next.ended;
    expect(JSON.parse((await run(['verify', '--json'], env)).stdout)).toMatchObject({ ok: true });
  });

  test('hears the signal when a shell started it in exec form', async () => {
    const { file, env } = await workWorld();
    const command = `exec '${process.execPath}' '${binary()}' work '${file}'`;
    const { child, ended, said } = startCommand('sh', ['-c', command], env);
    await said('works on');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null });
  });

  test('stops when nobody reads its output any more', async () => {
    const { file, env } = await workWorld();
    const { child, ended } = await startWorking([file], env);
    child.stdout.destroy();
    await enqueue(env, 'note', file);
    await run(['show', '1'], env);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(EXIT.closed_pipe);
  });
});

/** Whether this system lets a test be the first process of a namespace; where it does not, it is an ordinary process. */
const first: readonly [string, ...string[]] =
  spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0 ? ['unshare', '--pid', '--fork'] : ['env'];

test('as the first process of a container it hears SIGTERM, which such a process otherwise ignores', async () => {
  const { file, env } = await workWorld();
  const [command, ...before] = first;
  const { child, ended, said } = startCommand(
    command,
    [...before, process.execPath, binary(), 'work', file],
    env,
  );
  await said('works on');
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
  process.kill(children === '' ? Number(child.pid) : Number(children.split(' ')[0]), 'SIGTERM');
  const { code, stdout } = await ended;
  expect({ code, stopped: stdout.includes('stopped:') }).toEqual({ code: 0, stopped: true });
});
