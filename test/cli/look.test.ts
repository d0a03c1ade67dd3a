import { describe, expect, test } from 'vitest';
import { endedJob, newWorld, pay, START, take, uncertainJob } from './world.ts';

describe('jobs', () => {
  test('pages neither lose nor repeat a job', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue(Array.from({ length: 25 }, () => pay())));
    const seen: number[] = [];
    let after: number | null = 0;
    while (after !== null) {
      const page = await world.json('jobs', '--limit', '10', '--after', `${after}`);
      seen.push(...(page['jobs'] as { id: number }[]).map(({ id }) => id));
      after = page['nextAfter'] as number | null;
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, at) => at + 1));
  });

  test('a filter by state, queue, lane or need shows no other job', async () => {
    const world = await newWorld();
    const { id } = await uncertainJob(world, { queue: 'slow', orderingKey: 'alice' });
    await world.store((store) => store.enqueue([pay(), pay({ queue: 'slow', orderingKey: 'alice' })]));
    const ids = async (...argv: string[]): Promise<unknown> =>
      ((await world.json('jobs', ...argv))['jobs'] as { id: number }[]).map((job) => job.id);
    expect(await ids('--state', 'uncertain')).toEqual([id]);
    expect(await ids('--state', 'UNCERTAIN,pending')).toEqual([1, 2, 3]);
    expect(await ids('--queue', 'slow')).toEqual([1, 3]);
    expect(await ids('--lane', 'alice')).toEqual([1, 3]);
    expect(await ids('--needs-you')).toEqual([1]);
    expect(await ids('--queue', 'slow', '--queue', 'default', '--state', 'pending')).toEqual([2, 3]);
  });

  test('a key whose job was pruned is not told as unknown', async () => {
    const world = await newWorld();
    await endedJob(world, 'succeeded', { idempotencyKey: 'k' });
    world.now += 1_000;
    expect(await world.json('prune', '--succeeded-after', '0s', '--yes')).toMatchObject({
      jobs: 1,
      more: false,
    });
    expect(await world.json('jobs', '--key', 'k')).toEqual({
      jobs: [],
      nextAfter: null,
      tombstone: { id: 1 },
    });
    expect((await world.run('jobs', '--key', 'k')).stdout).toContain('pruned');
    expect((await world.run('show', '1')).exit).toBe('not_found');
  });
});

describe('show', () => {
  test('a job is never shown without saying whether its history verifies', async () => {
    const world = await newWorld();
    const id = await endedJob(world, 'succeeded');
    expect((await world.run('show', `${id}`)).stdout).toContain('verified: 3 entries');
    expect((await world.json('show', `${id}`))['verification']).toMatchObject({
      ok: true,
      entries: 3,
      faults: [],
    });
  });

  test('a report is shown with the entry that holds its digest', async () => {
    const world = await newWorld();
    const id = await endedJob(world, 'permanent');
    const { timeline, report } = await world.json('show', `${id}`);
    expect(report).toBe('card closed');
    expect(timeline).toContainEqual(
      expect.objectContaining({ state: 'PERMANENT_FAILURE', text: 'card closed' }),
    );
  });

  test('a late report is not lost from view', async () => {
    const world = await newWorld();
    const { id, token } = await uncertainJob(world, { acceptLateReports: false });
    await world.store((store) =>
      store.settle([{ id, token, worker: 'w-1', outcome: 'succeeded', report: '{"receipt":"r-9"}' }]),
    );
    expect((await world.json('show', `${id}`))['testimony']).toMatchObject([
      { worker: 'w-1', outcome: 'succeeded', report: '{"receipt":"r-9"}' },
    ]);
    expect((await world.run('uncertain')).stdout).toContain('r-9');
  });

  test('a key finds its job as well as an id does', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1', '--key', 'invoice-17');
    expect((await world.json('show', '--key', 'invoice-17'))['job']).toMatchObject({ id: 1 });
    expect((await world.run('show', '1', '--key', 'invoice-17')).exit).toBe('usage');
    expect((await world.run('show', '--key', 'other')).exit).toBe('not_found');
  });
});

describe('explain', () => {
  test('a job that waits is not left without its reason', async () => {
    const world = await newWorld();
    await world.store((store) =>
      store.enqueue([
        pay({ orderingKey: 'alice' }),
        pay({ orderingKey: 'alice' }),
        pay({ delayMs: 60_000 }),
        pay({ queue: 'slow' }),
      ]),
    );
    await world.run('pause', 'slow', '--reason', 'r', '--yes');
    const reason = async (id: number): Promise<unknown> => (await world.json('explain', `${id}`))['reason'];
    expect(await reason(1)).toBe('kind_unknown');
    expect(await reason(2)).toBe('lane_blocked');
    expect(await reason(3)).toBe('not_due');
    expect(await reason(4)).toBe('queue_paused');
    await world.store((store) => take(store, { max: 1, kind: 'pay' }));
    expect(await reason(1)).toBe('wrong_state');
    expect((await world.run('explain', '3')).stdout).toContain(new Date(START + 60_000).toISOString());
    world.now += 60_000;
    expect(await reason(3)).toBe('claimable');
  });

  test('workers that are gone do not make a job look claimable', async () => {
    const world = await newWorld();
    await world.store(async (store) => {
      await store.enqueue([pay(), pay()]);
      await take(store);
    });
    expect(await world.json('explain', '2')).toMatchObject({ claimable: true });
    world.now += 91_000;
    expect(await world.json('explain', '2')).toMatchObject({ claimable: false, reason: 'kind_unknown' });
  });
});

describe('lists', () => {
  test('queues show pauses with who and why, and what needs somebody', async () => {
    const world = await newWorld();
    await uncertainJob(world);
    await world.run('pause', 'default', '--reason', 'provider down', '--yes');
    const { stdout } = await world.run('queues');
    expect(stdout).toContain('by ada@engine: provider down');
    expect(stdout).toContain('1 jobs need you');
    expect(await world.json('queues')).toMatchObject({
      queues: [{ queue: 'default', unresolved: 1, states: { UNCERTAIN: 1 } }],
      needsYou: 1,
    });
  });

  test('a lane names the job that holds it', async () => {
    const world = await newWorld();
    const { id } = await uncertainJob(world, { orderingKey: 'alice' });
    await world.store((store) => store.enqueue([pay({ orderingKey: 'alice' })]));
    expect(await world.json('lanes')).toEqual({
      lanes: [{ queue: 'default', orderingKey: 'alice', headId: id, headState: 'UNCERTAIN', unresolved: 2 }],
    });
  });

  test('a worker that is gone and still holds jobs is not hidden', async () => {
    const world = await newWorld();
    await world.store(async (store) => {
      await store.enqueue([pay()]);
      await take(store, { worker: 'gone' });
    });
    world.now += 100_000;
    expect((await world.json('workers'))['workers']).toMatchObject([
      { worker: 'gone', alive: false, leases: 1 },
    ]);
  });

  test('an empty store is said to be empty, not shown as nothing', async () => {
    const world = await newWorld();
    for (const command of ['jobs', 'uncertain', 'queues', 'lanes', 'workers']) {
      expect((await world.run(command)).stdout).toMatch(/^(No|Nothing) .*\.\n$/);
    }
  });
});

describe('enqueue', () => {
  test('a job is not admitted as idempotent unless that is said', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '{}');
    await world.json('enqueue', 'pay', '--payload', '{}', '--idempotent');
    expect((await world.json('jobs'))['jobs']).toMatchObject([{ idempotent: false }, { idempotent: true }]);
  });

  test('every option reaches the job', async () => {
    const world = await newWorld();
    const argv = [
      '--key',
      'k',
      '--ordering-key',
      'alice',
      '--queue',
      'q',
      '--priority',
      '-7',
      '--revision',
      '3',
    ];
    await world.json(
      'enqueue',
      'pay',
      '--payload',
      '{}',
      ...argv,
      '--delay',
      '90s',
      '--deadline',
      '2030-01-01T03:00:00+01:00',
    );
    expect((await world.json('show', '1'))['job']).toMatchObject({
      idempotencyKey: 'k',
      orderingKey: 'alice',
      queue: 'q',
      priority: -7,
      revision: 3,
      startAt: START + 90_000,
      deadline: START + 7_200_000,
    });
  });

  test('a payload from the standard input is the payload, split anywhere', async () => {
    const world = await newWorld();
    const bytes = Buffer.from('{"name":"läne"}');
    world.stdin = [...bytes].map((byte) => String.fromCharCode(byte));
    Object.defineProperty(world, 'stdin', { value: [...bytes].map((byte) => Uint8Array.of(byte)) });
    await world.json('enqueue', 'pay', '--payload', '-');
    expect((await world.json('show', '1'))['payload']).toEqual({ name: 'läne' });
  });

  test('a number that would be changed by reading it is refused, not rounded', async () => {
    const world = await newWorld();
    for (const payload of ['{"cents":9007199254740993}', '[-12345678901234567890]']) {
      const ran = await world.run('enqueue', 'pay', '--payload', payload);
      expect(ran.exit).toBe('usage');
      expect(ran.stderr).toContain('exactly');
    }
    for (const payload of [
      '{"text":"9007199254740993"}',
      '0.12345678901234567',
      '1e300',
      '9007199254740991',
    ]) {
      expect((await world.run('enqueue', 'pay', '--payload', payload)).exit).toBe('success');
    }
  });

  test('what is no JSON, no UTF-8 or too large is usage, and nothing is admitted', async () => {
    const world = await newWorld();
    expect((await world.run('enqueue', 'pay', '--payload', '{a:1}')).exit).toBe('usage');
    Object.defineProperty(world, 'stdin', { value: [Uint8Array.of(0x22, 0xff, 0x22)] });
    expect((await world.run('enqueue', 'pay', '--payload', '-')).exit).toBe('usage');
    Object.defineProperty(world, 'stdin', { value: ['"', 'x'.repeat(1_048_577), '"'] });
    expect((await world.run('enqueue', 'pay', '--payload', '-')).exit).toBe('usage');
    Object.defineProperty(world, 'stdin', { value: [Buffer.alloc(9_000_000, 0x20)] });
    expect((await world.run('enqueue', 'pay', '--payload', '-')).exit).toBe('usage');
    expect((await world.json('jobs'))['jobs']).toEqual([]);
  });

  test('a time without its zone is refused, not guessed', async () => {
    const world = await newWorld();
    for (const deadline of ['2030-01-02T00:00:00', '2030-01-02', 'tomorrow', '+2', '+2x', '-5']) {
      const ran = await world.run('enqueue', 'pay', '--payload', '1', `--deadline=${deadline}`);
      expect({ deadline, exit: ran.exit }).toEqual({ deadline, exit: 'usage' });
    }
  });

  test('the same key and content again is a duplicate, and says what was ignored', async () => {
    const world = await newWorld();
    await world.json('enqueue', 'pay', '--payload', '1', '--key', 'k');
    expect(await world.json('enqueue', 'pay', '--payload', '1', '--key', 'k', '--priority', '5')).toEqual({
      status: 'duplicate',
      id: 1,
      ignored: ['priority'],
    });
  });
});
