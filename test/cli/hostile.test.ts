import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { expectPlain, newWorld, pay, take, type World } from './world.ts';

/** Escapes, C1 controls, bidi marks, separators and a lone tag; names may hold all of it but control characters. */
const TEXT =
  '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e\u2066\u200f\u2028\u2029\ufeff\u{e0001}<script>\r\n\b\u007f';
const NAME = 'n\u202e\u2066\u200f\u2028\u2029\ufeff\u{e0001}"\'<script>javascript:';

async function hostileWorld(): Promise<World> {
  const world = await newWorld();
  const kind = `kind-${NAME}`;
  await world.store(async (store) => {
    const one = { kind, queue: `queue-${NAME}`, orderingKey: `lane-${NAME}`, payload: { [TEXT]: TEXT } };
    await store.enqueue([
      pay({ ...one, idempotencyKey: `key-${NAME}` }),
      pay({ ...one, orderingKey: `lane2-${NAME}` }),
      pay({ ...one, orderingKey: `lane3-${NAME}` }),
      pay({ ...one, orderingKey: `lane3-${NAME}` }),
    ]);
    const worker = `worker-${NAME}`;
    const [a, b, c] = await take(store, { max: 3, worker, kind });
    if (a === undefined || b === undefined || c === undefined) throw new Error('nothing was claimed');
    await store.settle([
      { ...held(a.job), worker, outcome: 'uncertain', report: TEXT },
      { ...held(b.job), worker, outcome: 'succeeded', report: JSON.stringify({ [TEXT]: TEXT }) },
    ]);
    await store.settle([{ ...held(a.job), worker, outcome: 'retryable', report: TEXT }]);
    await store.settle([{ ...held(c.job), worker, outcome: 'permanent', report: TEXT }]);
    await store.cancel({ id: 4, by: { actor: `actor-${NAME}`, reason: TEXT } });
    await store.pause(`queue-${NAME}`, { actor: `actor-${NAME}`, reason: TEXT });
    await store.dismiss({ id: c.job.id, by: { actor: `actor-${NAME}`, reason: TEXT } });
  });
  return world;
}

function held({ id, token }: { readonly id: number; readonly token: number }): { id: number; token: number } {
  return { id, token };
}

const READS: readonly (readonly string[])[] = [
  ['jobs'],
  ['jobs', '--key', `key-${NAME}`],
  ['uncertain'],
  ...[1, 2, 3, 4].map((id) => ['show', String(id)]),
  ['explain', '1'],
  ['queues'],
  ['lanes'],
  ['workers'],
  ['verify'],
  ['doctor'],
  ['snapshot'],
  ['migrate', '--print'],
];

test('no control sequence of a payload, key, name, reason, report or worker reaches the terminal', async () => {
  const world = await hostileWorld();
  for (const argv of READS) {
    for (const extra of [[], ['--json']]) {
      const { stdout, stderr } = await world.run(...argv, ...extra);
      expect(stdout.length).toBeGreaterThan(0);
      expectPlain(stdout);
      expectPlain(stderr);
    }
  }
});

test('hostile text is shown, not dropped: an operator sees that it is there', async () => {
  const world = await hostileWorld();
  const { stdout } = await world.run('show', '1');
  expect(stdout).toContain('\\u{202e}');
  const shown = await world.json('show', '1');
  expect(shown['payload']).toEqual({ [TEXT]: TEXT });
});

test('a command line that echoes hostile input back in an error echoes no control sequence', async () => {
  const world = await newWorld();
  for (const argv of [
    [TEXT],
    ['jobs', `--${TEXT}`],
    ['jobs', '--key', TEXT],
    ['show', TEXT],
    ['enqueue', TEXT, '--payload', TEXT],
    ['jobs', '--state', TEXT],
  ]) {
    for (const extra of [[], ['--json']]) {
      const { stderr, exit } = await world.run(...argv, ...extra);
      expect(exit).not.toBe('success');
      expectPlain(stderr);
    }
  }
});

test('colour codes are the only control sequences on a terminal, and NO_COLOR switches them off', async () => {
  const world = await hostileWorld();
  world.colours = true;
  const { stdout } = await world.run('show', '1');
  expect(stdout).toContain('\u001b[1m');
  expectPlain(stripVTControlCharacters(stdout));
  world.env['NO_COLOR'] = '1';
  expectPlain((await world.run('show', '1')).stdout);
});
