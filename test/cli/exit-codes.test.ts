import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EXIT_TABLE } from '../../src/cli/exit.ts';
import { containing, endedJob, errorOf, newWorld, pay, START, uncertainJob, World } from './world.ts';

/** Every command with arguments that would be right. */
const COMMANDS: readonly (readonly string[])[] = [
  ['enqueue', 'pay', '--payload', '1'],
  ['jobs'],
  ['show', '1'],
  ['explain', '1'],
  ['uncertain'],
  ['queues'],
  ['lanes'],
  ['workers'],
  ['reconcile', '1', '--token', '1', '--decision', 'failed', '--reason', 'r', '--yes'],
  ['cancel', '1', '--reason', 'r', '--yes'],
  ['promote', '1'],
  ['redrive', '1', '--reason', 'r', '--yes'],
  ['dismiss', '1', '--reason', 'r', '--yes'],
  ['pause', 'default', '--reason', 'r', '--yes'],
  ['resume', 'default'],
  ['configure', 'default', '--max-unresolved', '3', '--yes'],
  ['verify'],
  ['bundle', '1'],
  ['doctor'],
  ['snapshot'],
  ['prune', '--yes'],
];

test('no two classes of failure share an exit code, and 0 is none of them', () => {
  const codes = EXIT_TABLE.map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
  expect(codes.filter((code) => code === 0)).toHaveLength(1);
});

describe('no command ends with 0 and no output is half JSON when', () => {
  test.each(COMMANDS)('%s is given an option that does not exist', async (...argv) => {
    const ran = await (await newWorld()).run(...argv, '--no-such-option', '--json');
    expect(ran).toMatchObject({ exit: 'usage', stdout: '' });
    expect(errorOf(ran)).toMatchObject({ code: 'usage', exit: 2 });
  });

  test.each(COMMANDS)('%s is given a store that is not there', async (...argv) => {
    const world = new World();
    const ran = await world.run(...argv, '--json');
    expect(ran).toMatchObject({ exit: 'storage', stdout: '' });
    expect(errorOf(ran)).toMatchObject({
      code: 'store_missing',
      exit: 6,
      next: containing('migrate'),
    });
  });

  test.each(COMMANDS)('%s is given a file of another program', async (...argv) => {
    const world = new World();
    writeFileSync(world.path, 'not a database, and not yours\n'.repeat(10));
    const ran = await world.run(...argv, '--json');
    expect(ran).toMatchObject({ exit: 'storage', stdout: '' });
    expect(errorOf(ran)).toMatchObject({ code: 'foreign_file', exit: 6 });
  });

  test.each(COMMANDS)('%s is given no store at all', async (...argv) => {
    const world = new World();
    world.env['CUSTODY_STORE'] = '';
    const ran = await world.run(...argv, '--json');
    expect(ran).toMatchObject({ exit: 'usage', stdout: '' });
    expect(errorOf(ran)['next']).toContain('--store');
  });

  const ABOUT_A_JOB = COMMANDS.filter((argv) => argv[1] === '1');
  test.each(ABOUT_A_JOB)('%s is given an id that no job has', async (...argv) => {
    const ran = await (await newWorld()).run(...argv, '--json');
    expect(ran).toMatchObject({ exit: 'not_found', stdout: '' });
    expect(errorOf(ran)).toMatchObject({ code: 'unknown_job', exit: 3 });
  });
});

describe('a failure has its own code:', () => {
  test('a missing command is usage, and says what there is', async () => {
    const ran = await (await newWorld()).run();
    expect(ran).toMatchObject({ exit: 'usage', stdout: '' });
    expect(ran.stderr).toContain('uncertain');
  });

  test('a misspelt command is usage, and suggests', async () => {
    const ran = await (await newWorld()).run('jbos');
    expect(ran.exit).toBe('usage');
    expect(ran.stderr).toContain('Did you mean jobs?');
  });

  test('a misspelt option is usage, and suggests', async () => {
    const ran = await (await newWorld()).run('jobs', '--limt', '3');
    expect(ran.stderr).toContain('Did you mean --limit?');
  });

  test('asking for help is full success', async () => {
    const ran = await (await newWorld()).run('show', '--help');
    expect(ran).toMatchObject({ exit: 'success', stderr: '' });
    expect(ran.stdout).toContain('$ custody show 17');
  });

  test('an idempotency key in use with other content is refused, and names the job that has it', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1', '--key', 'k');
    const ran = await world.run('enqueue', 'pay', '--payload', '2', '--key', 'k', '--json');
    expect(ran).toMatchObject({ exit: 'refused', stdout: '' });
    expect(errorOf(ran)).toMatchObject({ code: 'conflict', message: containing('job 1') });
    expect((await world.json('jobs'))['jobs']).toHaveLength(1);
  });

  test('a full queue is refused', async () => {
    const world = await newWorld();
    await world.run('configure', 'default', '--max-unresolved', '0', '--yes');
    const ran = await world.run('enqueue', 'pay', '--payload', '1', '--json');
    expect(ran.exit).toBe('refused');
    expect(errorOf(ran)['code']).toBe('capacity_exceeded');
  });

  test('a deadline that has passed is refused', async () => {
    const ran = await (await newWorld()).run('enqueue', 'pay', '--payload', '1', '--deadline', `${START}`);
    expect(ran.exit).toBe('refused');
  });

  test('an operator who decides on what is not there any more is refused', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1');
    const ran = await world.run('cancel', '1', '--version', '7', '--reason', 'r', '--yes', '--json');
    expect(ran.exit).toBe('refused');
    expect(errorOf(ran)['code']).toBe('version_mismatch');
  });

  test('a decision about another attempt than the one in question is refused', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world);
    const argv = [
      'reconcile',
      `${id}`,
      '--token',
      `${token + 1}`,
      '--decision',
      'failed',
      '--reason',
      'r',
      '--yes',
    ];
    const ran = await world.run(...argv, '--json');
    expect(ran.exit).toBe('refused');
    expect(errorOf(ran)['code']).toBe('stale_token');
  });

  test('a bulk act of which a part was refused is partial, and says which part', async () => {
    const world = await newWorld();
    const dead = await endedJob(world, 'permanent');
    const fine = await endedJob(world, 'succeeded');
    const ran = await world.run('redrive', `${dead}`, `${fine}`, '--reason', 'r', '--yes', '--json');
    expect(ran.exit).toBe('partial');
    expect(JSON.parse(ran.stdout)).toEqual({
      done: [{ id: dead, newId: 3 }],
      refused: [{ id: fine, code: 'wrong_state' }],
      dryRun: false,
    });
    expect(errorOf(ran)['code']).toBe('partly_refused');
  });

  test('a bulk act that names one unknown id does nothing at all', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1');
    const ran = await world.run('cancel', '1', '99', '--reason', 'r', '--yes');
    expect(ran).toMatchObject({ exit: 'not_found', stdout: '' });
    expect((await world.json('show', '1'))['job']).toMatchObject({ state: 'PENDING' });
  });

  test('a decision that stands without the redrive it asked for is partial', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world);
    await world.run('configure', 'default', '--max-unresolved', '0', '--yes');
    const argv = [
      'reconcile',
      `${id}`,
      '--token',
      `${token}`,
      '--decision',
      'failed',
      '--redrive',
      '--reason',
      'r',
    ];
    const ran = await world.run(...argv, '--yes', '--json');
    expect(ran.exit).toBe('partial');
    expect(JSON.parse(ran.stdout)).toMatchObject({ job: { state: 'PERMANENT_FAILURE' }, redriven: null });
    expect(errorOf(ran)['code']).toBe('capacity_exceeded');
  });

  test('a folder in place of a file is storage', async () => {
    const world = new World();
    mkdirSync(world.path);
    expect((await world.run('jobs')).exit).toBe('storage');
  });

  test('a sealed store refuses work as storage, and says where the jobs went', async () => {
    const world = await newWorld();
    await world.store((store) => store.seal('postgres://elsewhere', { actor: 'ada' }));
    const ran = await world.run('enqueue', 'pay', '--payload', '1', '--json');
    expect(ran.exit).toBe('storage');
    expect(errorOf(ran)).toMatchObject({
      code: 'store_sealed',
      message: containing('elsewhere'),
    });
  });

  test('a store of an unknown kind is usage', async () => {
    const ran = await (await newWorld()).run('jobs', '--store', 'mongodb://x');
    expect(ran.exit).toBe('usage');
  });

  test('an interruption is its own code, not a success', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue([pay()]));
    const { Interrupted } = await import('../../src/cli/errors.ts');
    world.signal = AbortSignal.abort(new Interrupted('interrupted'));
    expect((await world.run('verify')).exit).toBe('interrupted');
    world.signal = AbortSignal.abort(new Interrupted('terminated'));
    expect((await world.run('verify')).exit).toBe('terminated');
  });

  test('a reader that went away ends it quietly', async () => {
    const world = await newWorld();
    const { Interrupted } = await import('../../src/cli/errors.ts');
    world.signal = AbortSignal.abort(new Interrupted('closed_pipe'));
    expect(await world.run('snapshot')).toMatchObject({ exit: 'closed_pipe', stderr: '' });
  });
});

test('a file that may not be read is storage or, for the one user who may read all, no failure', async () => {
  const world = new World();
  writeFileSync(world.file('bundle.json'), '{}');
  chmodSync(world.file('bundle.json'), 0);
  const { exit } = await world.run('verify-bundle', world.file('bundle.json'));
  expect(exit).toBe(process.getuid?.() === 0 ? 'unsound' : 'storage');
});
