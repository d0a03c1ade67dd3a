import { expect, test } from 'vitest';
import { newWorld, pay } from './world.ts';

/** What would mean something in SQL, in patterns or in a shell, and must mean nothing here. */
const CRAFTED: readonly string[] = [
  "'",
  "' or '1'='1",
  "'; delete from submission; --",
  '"; drop table live; --',
  '\\',
  '$$; select 1; $$',
  '%',
  '_',
  '/* */',
  '-- ',
  '`rm -rf .`',
  'x'.repeat(100_000),
];

test('crafted text in a filter or key matches literally or not at all, and changes nothing', async () => {
  const world = await newWorld();
  const names = CRAFTED.filter((text) => text.length <= 100);
  await world.store((store) =>
    store.enqueue([
      pay(),
      ...names.map((name) => pay({ kind: name, queue: name, orderingKey: name, idempotencyKey: name })),
    ]),
  );
  const all = await world.json('jobs');
  const ids = (found: unknown): readonly unknown[] => (found as { id: number }[]).map(({ id }) => id);
  for (const [index, name] of CRAFTED.entries()) {
    const wanted = names.includes(name) ? [index + 2] : [];
    for (const filter of ['--kind', '--queue', '--lane']) {
      const { jobs } = await world.json('jobs', `${filter}=${name}`);
      expect({ filter, name, ids: ids(jobs) }).toEqual({ filter, name, ids: wanted });
    }
    expect((await world.json('jobs', `--lineage=${name}`))['jobs']).toEqual([]);
    const byKey = await world.run('jobs', `--key=${name}`, '--json');
    expect(byKey.exit).toBe(wanted.length === 1 ? 'success' : 'not_found');
    for (const argv of [
      ['show', name],
      ['jobs', `--after=${name}`],
      ['jobs', `--state=${name}`],
      ['verify', name],
    ]) {
      const ran = await world.run(...argv, '--json');
      expect({ argv, exit: ran.exit }).toEqual({ argv, exit: 'usage' });
    }
  }
  expect(await world.json('jobs')).toEqual(all);
});

test('a NUL in a filter finds nothing and breaks nothing', async () => {
  const world = await newWorld();
  await world.store((store) => store.enqueue([pay()]));
  expect((await world.json('jobs', '--kind', 'pay\u0000'))['jobs']).toEqual([]);
});

test('crafted text in a write is stored as it is or refused as usage', async () => {
  const world = await newWorld();
  for (const text of CRAFTED.filter((one) => one.length <= 100)) {
    const argv = [
      `--key=k${text}`,
      `--queue=${text}`,
      `--ordering-key=${text}`,
      '--payload',
      JSON.stringify({ text }),
    ];
    const { id } = await world.json('enqueue', ...argv, '--', text);
    const shown = await world.json('show', String(id));
    expect(shown['payload']).toEqual({ text });
    expect(shown['job']).toMatchObject({
      kind: text,
      queue: text,
      orderingKey: text,
      idempotencyKey: `k${text}`,
    });
  }
  const long = 'x'.repeat(100_000);
  expect((await world.run('enqueue', long, '--payload', '1')).exit).toBe('usage');
  expect((await world.run('enqueue', 'pay', '--payload', '1', '--key', long)).exit).toBe('usage');
});
