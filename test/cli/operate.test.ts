import { describe, expect, test } from 'vitest';
import { containing, endedJob, newWorld, pay, START, take, uncertainJob } from './world.ts';

const DESTRUCTIVE: readonly (readonly string[])[] = [
  ['cancel', '1', '--reason', 'r'],
  ['redrive', '1', '--reason', 'r'],
  ['dismiss', '1', '--reason', 'r'],
  ['reconcile', '1', '--token', '1', '--decision', 'failed', '--reason', 'r'],
  ['pause', 'default', '--reason', 'r'],
  ['configure', 'default', '--max-unresolved', '1'],
  ['prune', '--succeeded-after', '0s', '--failed-after', '0s', '--undismissed'],
];

describe('a destructive verb', () => {
  test.each(DESTRUCTIVE)('%s is not done where there is nobody to ask', async (...argv) => {
    const world = await newWorld();
    await endedJob(world, 'permanent');
    const before = await world.run('snapshot');
    const ran = await world.run(...argv);
    expect(ran).toMatchObject({ exit: 'usage', stdout: '' });
    expect(ran.stderr).toContain('--yes');
    expect((await world.run('snapshot')).stdout).toBe(before.stdout);
  });

  test.each(DESTRUCTIVE)('%s is not done when anything but the word is typed', async (...argv) => {
    const world = await newWorld();
    await endedJob(world, 'permanent');
    const before = await world.run('snapshot');
    world.types = 'y';
    const ran = await world.run(...argv);
    expect(ran.exit).toBe('usage');
    expect(world.questions).toHaveLength(1);
    world.types = null;
    expect((await world.run('snapshot')).stdout).toBe(before.stdout);
  });

  test('a queue is not paused by typing yes: its name must be typed', async () => {
    const world = await newWorld();
    world.types = 'yes';
    expect((await world.run('pause', 'payments', '--reason', 'r')).exit).toBe('usage');
    world.types = 'payments';
    expect((await world.run('pause', 'payments', '--reason', 'r')).exit).toBe('success');
    expect(world.questions[1]).toContain('Type payments');
  });

  test.each(['cancel', 'redrive', 'dismiss'])('%s is not done without a reason', async (verb) => {
    const world = await newWorld();
    const ran = await world.run(verb, '1', '--yes');
    expect(ran.exit).toBe('usage');
    expect(ran.stderr).toContain('--reason');
  });
});

describe('who and why', () => {
  test('an act is never recorded without its actor and reason', async () => {
    const world = await newWorld();
    await world.run('pause', 'q', '--reason', 'provider down', '--yes');
    world.env['CUSTODY_ACTOR'] = 'grace';
    await world.run('resume', 'q', '--reason', 'provider back');
    await world.json('configure', 'q', '--max-unresolved', 'none', '--actor', 'mary', '--yes');
    const acts = await world.store((store) => store.acts());
    expect(acts.map(({ act, actor, reason }) => [act, actor, reason])).toEqual([
      ['pause', 'ada@engine', 'provider down'],
      ['resume', 'grace', 'provider back'],
      ['configure', 'mary', null],
    ]);
  });

  test('a decision about a job is in its history with actor and reason', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1');
    await world.run('cancel', '1', '--reason', 'customer withdrew', '--yes');
    const { timeline } = await world.json('show', '1');
    expect(timeline).toContainEqual({
      tick: START,
      state: 'CANCELLED',
      sentence: 'ada@engine cancelled the job.',
      text: 'customer withdrew',
    });
  });

  test('a name that cannot be an actor is refused before anything is changed', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1');
    const ran = await world.run('cancel', '1', '--reason', 'r', '--actor', 'a\u001b[2J', '--yes');
    expect(ran.exit).toBe('usage');
    expect((await world.json('show', '1'))['job']).toMatchObject({ state: 'PENDING' });
  });
});

describe('acts on many jobs', () => {
  test('a filter touches nothing outside of it, and counts before it asks', async () => {
    const world = await newWorld();
    await world.store((store) =>
      store.enqueue([pay(), pay({ kind: 'mail' }), pay({ kind: 'mail', queue: 'slow' }), pay()]),
    );
    world.types = 'yes';
    const ran = await world.run('cancel', '--kind', 'mail', '--reason', 'wrong list');
    expect(ran.exit).toBe('success');
    expect(world.questions).toEqual(['This will cancel 2 jobs.\nType yes to go on: ']);
    world.types = null;
    const { jobs } = await world.json('jobs', '--state', 'cancelled');
    expect(jobs).toMatchObject([{ id: 2 }, { id: 3 }]);
  });

  test('neither ids nor a filter is not everything', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue([pay()]));
    const ran = await world.run('cancel', '--reason', 'r', '--yes');
    expect(ran.exit).toBe('usage');
    expect((await world.run('cancel', '1', '--kind', 'pay', '--reason', 'r', '--yes')).exit).toBe('usage');
    expect((await world.json('jobs', '--state', 'pending'))['jobs']).toHaveLength(1);
  });

  test('more jobs than one page are not silently cut', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue(Array.from({ length: 1_203 }, () => pay())));
    const { done } = await world.json('cancel', '--all', '--reason', 'r', '--yes');
    expect(done).toHaveLength(1_203);
  });

  test('--max bounds what is done', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue([pay(), pay(), pay()]));
    const { done } = await world.json('cancel', '--all', '--max', '2', '--reason', 'r', '--yes');
    expect(done).toMatchObject([{ id: 1 }, { id: 2 }]);
  });

  test('a job that moved after it was counted is not touched', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue([pay({ delayMs: 60_000 })]));
    world.types = 'yes';
    world.whileAsked = () => world.store((store) => store.promote({ id: 1, by: { actor: 'rival' } }));
    const ran = await world.run('cancel', '--all', '--reason', 'r');
    expect(ran.exit).toBe('refused');
    expect(ran.stderr).toContain('The job has moved since the version the operator saw.');
    world.types = null;
    expect((await world.json('show', '1'))['job']).toMatchObject({ state: 'SCHEDULED', version: 1 });
  });

  test('a dry run of a redrive makes nothing and still says what would be refused', async () => {
    const world = await newWorld();
    const dead = await endedJob(world, 'permanent');
    await world.run('redrive', `${dead}`, '--reason', 'r', '--yes');
    const other = await endedJob(world, 'permanent', { kind: 'mail' });
    const before = (await world.run('snapshot')).stdout;
    const ran = await world.run('redrive', `${dead}`, `${other}`, '--dry-run', '--reason', 'r', '--json');
    expect(ran.exit).toBe('partial');
    expect(JSON.parse(ran.stdout)).toMatchObject({
      done: [{ id: other, newId: null }],
      refused: [{ id: dead, code: 'already_redriven' }],
      dryRun: true,
    });
    expect((await world.run('snapshot')).stdout).toBe(before);
  });

  test('a redrive by filter does not try again what was redriven before', async () => {
    const world = await newWorld();
    await endedJob(world, 'permanent');
    await world.json('redrive', '--all', '--reason', 'r', '--yes');
    expect(await world.json('redrive', '--all', '--reason', 'r', '--yes')).toMatchObject({
      done: [],
      refused: [],
    });
  });

  test('a redriven job and its source do not lose each other', async () => {
    const world = await newWorld();
    const dead = await endedJob(world, 'permanent');
    await world.json('redrive', `${dead}`, '--reason', 'r', '--yes', '--deadline', '+2h');
    expect((await world.json('show', `${dead}`))['links']).toMatchObject({ redrivenTo: 2 });
    const made = await world.json('show', '2');
    expect(made['links']).toMatchObject({ redrivenFrom: dead });
    expect(made['job']).toMatchObject({ deadline: START + 7_200_000 });
  });
});

describe('reconcile', () => {
  test('an UNCERTAIN job is not decided without saying which attempt, what and why', async () => {
    const world = await newWorld();
    await uncertainJob(world);
    const full = ['--token', '1', '--decision', 'failed', '--reason', 'r'];
    for (const left of [0, 2, 4]) {
      const argv = full.filter((_, at) => at !== left && at !== left + 1);
      expect((await world.run('reconcile', '1', ...argv, '--yes')).exit).toBe('usage');
    }
  });

  test('a decision that succeeded leaves the inbox empty and the evidence sound', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world);
    const { jobs } = await world.json('uncertain');
    expect(jobs).toMatchObject([{ id, needsYou: 'uncertain', advice: containing(`--token ${token}`) }]);
    const argv = ['--token', `${token}`, '--decision', 'succeeded', '--reason', 'receipt r-1', '--yes'];
    expect(await world.json('reconcile', `${id}`, ...argv)).toMatchObject({ job: { state: 'SUCCEEDED' } });
    expect((await world.json('uncertain'))['jobs']).toEqual([]);
    expect(await world.json('verify')).toMatchObject({ ok: true, jobs: 1 });
  });

  test('failed with a redrive makes the new job in the same commit', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world);
    const argv = ['--token', `${token}`, '--decision', 'failed', '--redrive', '--reason', 'voided', '--yes'];
    expect(await world.json('reconcile', `${id}`, ...argv)).toMatchObject({
      job: { state: 'PERMANENT_FAILURE' },
      redriven: 2,
      redriveRefused: null,
    });
  });

  test('a retry of what is not idempotent is refused', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world);
    const argv = ['--token', `${token}`, '--decision', 'retry', '--reason', 'r', '--yes'];
    expect((await world.run('reconcile', `${id}`, ...argv)).exit).toBe('refused');
  });

  test('a statement about a step that says nothing is refused before anything is decided', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world);
    const argv = [
      'reconcile',
      `${id}`,
      '--token',
      `${token}`,
      '--decision',
      'failed',
      '--reason',
      'r',
      '--yes',
    ];
    for (const step of ['charge', 'charge=', 'charge=maybe', '=did-not', 'charge=took-place:{']) {
      expect((await world.run(...argv, `--step=${step}`)).exit).toBe('usage');
    }
    expect((await world.json('show', `${id}`))['job']).toMatchObject({ state: 'UNCERTAIN' });
  });

  test('what is said of an open step reaches the record, keys with signs included', async () => {
    const world = await newWorld();
    const key = 'charge=1:x';
    await world.store(async (store) => {
      await store.enqueue([pay({ idempotent: true })]);
      const [delivery] = await take(store, { idempotent: true });
      if (delivery === undefined) throw new Error('nothing was claimed');
      const { id, token } = delivery.job;
      await store.transact({ id, token }, (tx) => tx.beginStep(key, { descriptor: 1, idempotent: false }));
      await store.settle([{ id, token, worker: 'w-1', outcome: 'uncertain', report: 'lost' }]);
    });
    const argv = ['reconcile', '1', '--token', '1', '--decision', 'retry', '--reason', 'r', '--yes'];
    expect((await world.run(...argv)).exit).toBe('refused');
    const said = await world.json(
      argv[0] ?? '',
      ...argv.slice(1),
      '--step',
      `${key}=took-place:{"receipt":"r-1"}`,
    );
    expect(said['job']).toMatchObject({ state: 'PENDING' });
    const { timeline } = await world.json('show', '1');
    expect(JSON.stringify(timeline)).toContain('step charge=1:x took place');
  });
});
