import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { Interrupted } from '../../src/cli/errors.ts';
import { endedJob, errorOf, newWorld, pay, take, uncertainJob, World } from './world.ts';

interface Finding {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly remedy: string;
}

interface Database {
  exec(sql: string): void;
  close(): void;
}

/** Changes a store behind its back. */
function tamper(world: World, sql: string): void {
  const open = createRequire(import.meta.url)('better-sqlite3') as new (path: string) => Database;
  const database = new open(world.path);
  database.exec(sql);
  database.close();
}

describe('verify', () => {
  test('a changed row, payload, root or report is found and named', async () => {
    const changes = [
      ['update settled set state = 4 where id = 2', 'state_mismatch'],
      ['update submission set payload = \'{"cents":900}\' where id = 2', 'payload_mismatch'],
      [`update settled set root = '${'0'.repeat(64)}' where id = 2`, 'root_mismatch'],
      ['update settled set attempt = 9 where id = 2', 'state_mismatch'],
    ] as const;
    for (const [sql, code] of changes) {
      const world = await newWorld();
      await endedJob(world, 'succeeded');
      await endedJob(world, 'permanent');
      tamper(world, sql);
      const ran = await world.run('verify', '--json');
      expect(ran.exit).toBe('unsound');
      const { ok, jobs, faults } = JSON.parse(ran.stdout) as { ok: boolean; jobs: number; faults: unknown[] };
      expect({ ok, jobs }).toEqual({ ok: false, jobs: 2 });
      expect(faults).toContainEqual(expect.objectContaining({ id: 2, code }));
      expect(errorOf(ran)['code']).toBe('verification_failed');
      expect((await world.run('show', '2')).exit).toBe('unsound');
      expect((await world.run('verify', '2')).exit).toBe('unsound');
      expect((await world.run('verify', '1')).exit).toBe('success');
    }
  });

  test('a job whose rows cannot be read does not hide the others', async () => {
    const world = await newWorld();
    for (let count = 0; count < 4; count++) await endedJob(world, 'succeeded');
    tamper(
      world,
      "update settled set ledger = x'ffffffff00' where id = 2; update submission set asked = '{' where id = 3",
    );
    const ran = await world.run('verify', '--json');
    expect(ran.exit).toBe('unsound');
    expect(JSON.parse(ran.stdout)).toMatchObject({
      jobs: 4,
      faults: [
        { id: 2, code: 'unreadable' },
        { id: 3, code: 'unreadable' },
      ],
    });
  });

  test('a job of which half is gone is not passed over', async () => {
    const world = await newWorld();
    await endedJob(world, 'succeeded');
    await endedJob(world, 'succeeded');
    tamper(world, 'delete from settled where id = 1; delete from submission where id = 2');
    const { stdout, exit } = await world.run('verify', '--json');
    expect(exit).toBe('unsound');
    expect(JSON.parse(stdout)).toMatchObject({ faults: [{ id: 1, code: 'unreadable' }, { id: 2 }] });
  });

  test('an interrupted run says where to go on, and the rest is verified from there', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue(Array.from({ length: 120 }, () => pay())));
    const stop = new AbortController();
    let looks = 0;
    world.signal = stop.signal;
    stop.signal.throwIfAborted = () => {
      looks += 1;
      if (looks === 3) throw new Interrupted('interrupted');
    };
    const ran = await world.run('verify', '--json');
    expect(ran.exit).toBe('interrupted');
    expect(JSON.parse(ran.stdout)).toMatchObject({ ok: false, complete: false, jobs: 100, lastId: 100 });
    world.signal = new AbortController().signal;
    expect(await world.json('verify', '--after', '100')).toMatchObject({ ok: true, jobs: 20 });
    expect(await world.json('verify', '--after', '10', '--until', '15')).toMatchObject({
      jobs: 5,
      lastId: 15,
    });
  });
});

describe('bundles', () => {
  test('a bundle proves itself without the store, and not when anything in it was changed', async () => {
    const world = await newWorld();
    const id = await endedJob(world, 'succeeded');
    const file = world.file('job.json');
    expect(await world.json('bundle', `${id}`, '--out', file)).toMatchObject({ id, entries: 3 });
    const elsewhere = new World();
    elsewhere.env['CUSTODY_STORE'] = '';
    expect(await elsewhere.json('verify-bundle', file)).toMatchObject({
      ok: true,
      job: { id, state: 'SUCCEEDED' },
    });
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('700', '701'));
    const ran = await elsewhere.run('verify-bundle', file, '--json');
    expect(ran.exit).toBe('unsound');
    expect(JSON.parse(ran.stdout)).toMatchObject({ ok: false });
    elsewhere.stdin = [text];
    expect(await elsewhere.json('verify-bundle', '-')).toMatchObject({ ok: true });
  });

  test('a file that is there is not overwritten by a bundle', async () => {
    const world = await newWorld();
    const id = await endedJob(world, 'succeeded');
    writeFileSync(world.file('mine'), 'mine');
    expect((await world.run('bundle', `${id}`, '--out', world.file('mine'))).exit).toBe('usage');
    expect(readFileSync(world.file('mine'), 'utf8')).toBe('mine');
  });

  test('a bundle is not printed on a terminal, where its text could act', async () => {
    const world = await newWorld();
    const id = await endedJob(world, 'succeeded');
    world.colours = true;
    expect(await world.run('bundle', `${id}`)).toMatchObject({ exit: 'usage', stdout: '' });
  });

  test('a file that is no bundle is unsound, and one that is not there is not found', async () => {
    const world = await newWorld();
    writeFileSync(world.file('x'), 'hello');
    expect((await world.run('verify-bundle', world.file('x'))).exit).toBe('unsound');
    expect((await world.run('verify-bundle', world.file('y'))).exit).toBe('not_found');
  });
});

describe('prune', () => {
  test('never is never, and what needs somebody is not taken', async () => {
    const world = await newWorld();
    await endedJob(world, 'succeeded');
    await endedJob(world, 'permanent');
    world.now += 1_000;
    const ages = ['--succeeded-after', 'never', '--failed-after', '0s', '--yes'];
    expect(await world.json('prune', ...ages)).toMatchObject({ jobs: 0, more: false });
    expect(await world.json('prune', ...ages, '--undismissed')).toMatchObject({ jobs: 1, more: false });
    expect((await world.json('jobs'))['jobs']).toMatchObject([{ id: 1 }]);
  });

  test('more than one page goes, and --max bounds it', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue(Array.from({ length: 12 }, () => pay())));
    await world.json('cancel', '--all', '--reason', 'r', '--yes');
    world.now += 1_000;
    const ages = ['--cancelled-after', '1s', '--yes'];
    expect(await world.json('prune', ...ages, '--max', '5')).toMatchObject({ jobs: 5, more: true });
    expect(await world.json('prune', ...ages)).toMatchObject({ jobs: 7, more: false });
  });
});

describe('snapshot and restore', () => {
  async function busyWorld(): Promise<World> {
    const world = await newWorld();
    await endedJob(world, 'succeeded', { idempotencyKey: 'k\u202e' });
    await uncertainJob(world, { orderingKey: 'alice' });
    await world.store(async (store) => {
      await store.enqueue([pay({ orderingKey: 'alice' }), pay({ payload: { text: '\u0000\u009b\u2028' } })]);
      await take(store, { max: 1 });
      await store.pause('default', { actor: 'ada', reason: 'r' });
    });
    return world;
  }

  test('nothing is lost or changed on the way from one store to another', async () => {
    const world = await busyWorld();
    const taken = (await world.run('snapshot')).stdout;
    const other = new World();
    writeFileSync(other.file('jobs.jsonl'), taken);
    const argv = ['restore', other.file('jobs.jsonl'), '--as', 'restart', '--yes', '--reason', 'moved'];
    expect((await other.run(...argv)).exit).toBe('success');
    const again = (await other.run('snapshot')).stdout;
    expect(again).toBe(taken);
    expect(await other.json('verify')).toMatchObject({ ok: true, jobs: 4 });
  });

  test('a copy does not give out tokens that the source may give out too', async () => {
    const world = await busyWorld();
    const other = new World();
    other.stdin = [(await world.run('snapshot')).stdout];
    expect(await other.json('restore', '--as', 'copy', '--yes')).toMatchObject({ as: 'copy' });
    const { id } = await other.json('enqueue', 'pay', '--payload', '1');
    expect(Number(id)).toBeGreaterThan(2 ** 32);
  });

  test('a snapshot that was cut off, altered, reordered or continued restores nothing', async () => {
    const world = await busyWorld();
    const lines = (await world.run('snapshot')).stdout.trimEnd().split('\n');
    const jobs = lines.findIndex((line) => line.startsWith('{"jobs"'));
    const swapped = lines.with(jobs, lines[jobs + 1] ?? '').with(jobs + 1, lines[jobs] ?? '');
    const damaged: readonly (readonly string[])[] = [
      [],
      lines.slice(0, -1),
      lines.toSpliced(jobs, 1),
      [...lines, lines[1] ?? ''],
      lines.with(jobs, (lines[jobs] ?? '').replace('700', '701')),
      lines.with(jobs, (lines[jobs] ?? '').slice(0, -10)),
      lines.slice(1),
      swapped,
      ['hello'],
      ['[1,2]'],
    ];
    for (const one of damaged) {
      const other = new World();
      other.stdin = [one.join('\n')];
      const ran = await other.run('restore', '--as', 'copy', '--yes', '--json');
      expect(ran).toMatchObject({ exit: 'refused', stdout: '' });
      expect(errorOf(ran)['code']).toBe('snapshot_refused');
    }
  });

  test('a store that holds jobs is not overwritten', async () => {
    const world = await busyWorld();
    world.stdin = [(await world.run('snapshot')).stdout];
    const ran = await world.run('restore', '--as', 'copy', '--yes');
    expect(ran.exit).toBe('refused');
  });
});

describe('doctor', () => {
  async function findings(world: World, ...argv: string[]): Promise<readonly Finding[]> {
    const { stdout } = await world.run('doctor', '--json', ...argv);
    return (JSON.parse(stdout) as { findings: readonly Finding[] }).findings;
  }

  test('a sound store is not called sick', async () => {
    const world = await newWorld();
    await endedJob(world, 'succeeded');
    expect(await world.json('doctor', '--full', '--strict')).toMatchObject({ healthy: true, findings: [] });
  });

  test.each([
    ['counters', 'update counter set next_id = 1; insert into settled select * from settled where 0'],
    [
      'live_and_settled',
      "insert into live select 1, route, null, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, 0, null, null, null, null, 1, 0, 0, null, null, null, null, null, null, '', x'', 0, null, null, null, null, null from settled where id = 1",
    ],
    ['lost_rows', 'delete from settled where id = 1'],
    ['lost_rows', 'delete from submission where id = 1'],
    ['lane_heads', 'update live set ready = 0, head = 0 where id = 2'],
    ['queue_counts', 'update queue set unresolved = 77'],
    ['schema', 'update custody_schema set number = 99'],
    ['newer_schema', 'update custody_schema set number = 99, compatible_from = 99'],
    ['clock', 'update counter set last_tick = last_tick + 3600000'],
    ['sealed', "update counter set sealed_to = 'elsewhere'"],
    ['clock', "update counter set clock = 'simulated'"],
  ])('%s is found after %s', async (code, sql) => {
    const world = await newWorld();
    await endedJob(world, 'succeeded');
    await world.store((store) => store.enqueue([pay({ orderingKey: 'alice' })]));
    await world.run('configure', 'default', '--max-unresolved', '10', '--yes');
    tamper(world, sql);
    const found = await findings(world);
    expect(found.map((one) => one.code)).toContain(code);
    expect(found.filter(({ message, remedy }) => message === '' || remedy === '')).toEqual([]);
    const fault = found.some(({ severity }) => severity === 'fault');
    expect((await world.run('doctor')).exit).toBe(fault ? 'unsound' : 'success');
    expect((await world.run('doctor', '--strict')).exit).toBe('unsound');
  });

  test('a file with a broken page is found, also where no store opens it', async () => {
    const world = await newWorld();
    await world.store((store) => store.enqueue(Array.from({ length: 400 }, () => pay())));
    tamper(world, 'pragma wal_checkpoint(truncate)');
    const bytes = readFileSync(world.path);
    bytes.fill(0x5a, 3 * 4096, 12 * 4096);
    writeFileSync(world.path, bytes);
    const ran = await world.run('doctor', '--json');
    expect(ran.exit).toBe('unsound');
    const { findings: found } = JSON.parse(ran.stdout) as { findings: { code: string; severity: string }[] };
    expect(found.some(({ severity }) => severity === 'fault')).toBe(true);
  });

  test('jobs no worker can take, jobs that need somebody, pauses, full queues and dead holders are told', async () => {
    const world = await newWorld();
    await uncertainJob(world);
    await world.store(async (store) => {
      await store.enqueue([pay(), pay()]);
      await take(store, { worker: 'gone' });
    });
    await world.run('pause', 'default', '--reason', 'r', '--yes');
    await world.run('configure', 'default', '--max-unresolved', '3', '--yes');
    world.now += 100_000;
    const codes = (await findings(world)).map(({ code }) => code);
    expect(codes).toEqual(
      expect.arrayContaining(['stranded', 'needs_you', 'paused', 'full_queues', 'dead_holders']),
    );
    expect((await world.run('doctor')).exit).toBe('success');
  });
});

test('the SQL of the schema is printed without a store, and is the SQL that is run', async () => {
  const world = new World();
  world.env['CUSTODY_STORE'] = '';
  const { stdout, exit } = await world.run('migrate', '--print');
  expect(exit).toBe('success');
  const open = createRequire(import.meta.url)('better-sqlite3') as new (path: string) => Database;
  const database = new open(':memory:');
  database.exec(stdout);
  database.close();
});
