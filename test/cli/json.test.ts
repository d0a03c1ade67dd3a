import { beforeEach, describe, expect, test } from 'vitest';
import { contextForHelp } from '../../scripts/cli-reference.ts';
import { notesOf } from '../../src/cli/command.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { endedJob, newWorld, pay, uncertainJob, type World } from './world.ts';

let world: World;

/** Jobs 1 failed, 2 UNCERTAIN in a lane, 3 waiting behind it, 4 scheduled, 5 dead for good. */
beforeEach(async () => {
  world = await newWorld();
  await endedJob(world, 'permanent', { idempotencyKey: 'k' });
  await uncertainJob(world, { orderingKey: 'alice' });
  await world.store((store) => store.enqueue([pay({ orderingKey: 'alice' }), pay({ delayMs: 60_000 })]));
  await endedJob(world, 'permanent', { kind: 'mail' });
});

/** Command lines with the fields their document must have: a field that goes, or comes undocumented, fails. */
const SHAPES: readonly (readonly [argv: readonly string[], fields: readonly string[]])[] = [
  [
    ['enqueue', 'pay', '--payload', '1'],
    ['status', 'id', 'ignored'],
  ],
  [['jobs'], ['jobs', 'nextAfter', 'tombstone']],
  [
    ['jobs', '--key', 'k'],
    ['jobs', 'nextAfter', 'tombstone'],
  ],
  [
    ['show', '2'],
    [
      'job',
      'payload',
      'report',
      'policy',
      'links',
      'openSteps',
      'dismissed',
      'testimony',
      'contradictions',
      'timeline',
      'verification',
      'explanation',
      'advice',
    ],
  ],
  [
    ['explain', '3'],
    ['id', 'claimable', 'reason', 'sentence', 'next', 'facts'],
  ],
  [['uncertain'], ['jobs', 'nextAfter']],
  [['queues'], ['queues', 'needsYou', 'stranded', 'contradictions']],
  [['lanes'], ['lanes']],
  [['workers'], ['workers']],
  [
    ['reconcile', '2', '--token', '2', '--decision', 'succeeded', '--reason', 'r', '--yes'],
    ['job', 'redriven', 'redriveRefused'],
  ],
  [
    ['cancel', '3', '--reason', 'r', '--yes'],
    ['done', 'refused', 'dryRun'],
  ],
  [
    ['promote', '4'],
    ['done', 'refused', 'dryRun'],
  ],
  [
    ['dismiss', '1', '--reason', 'r', '--yes'],
    ['done', 'refused', 'dryRun'],
  ],
  [
    ['redrive', '1', '--reason', 'r', '--yes'],
    ['done', 'refused', 'dryRun'],
  ],
  [
    ['redrive', '--all', '--dry-run', '--reason', 'r'],
    ['done', 'refused', 'dryRun'],
  ],
  [
    ['pause', 'q', '--reason', 'r', '--yes'],
    ['queue', 'paused', 'actor', 'reason'],
  ],
  [
    ['resume', 'q'],
    ['queue', 'paused', 'actor', 'reason'],
  ],
  [
    ['configure', 'q', '--max-unresolved', '9', '--yes'],
    ['queue', 'maxUnresolved', 'actor', 'reason'],
  ],
  [['verify'], ['ok', 'jobs', 'entries', 'faults', 'faultsNotListed', 'complete', 'lastId']],
  [
    ['verify', '1'],
    ['ok', 'jobs', 'entries', 'faults', 'faultsNotListed', 'complete', 'lastId'],
  ],
  [['doctor'], ['healthy', 'findings', 'checked', 'storage']],
  [['migrate'], ['store', 'schema']],
  [['migrate', '--print'], ['migrations']],
  [
    ['prune', '--yes'],
    ['jobs', 'keys', 'effects', 'more'],
  ],
];

describe('what --json prints', () => {
  test.each(SHAPES)('%j has exactly the fields the reference says', async (argv, fields) => {
    const value = await world.json(argv[0] ?? '', ...argv.slice(1));
    expect(Object.keys(value).sort()).toEqual([...fields].sort());
    const command = buildProgram(contextForHelp(), '0').commands.find((one) => one.name() === argv[0]);
    const documented = command === undefined ? '' : (notesOf(command)?.json ?? '');
    for (const field of fields) expect(documented).toMatch(new RegExp(`\\b${field}\\b`));
  });

  test('a job in a list has exactly the fields the reference says', async () => {
    const { jobs } = await world.json('jobs');
    const command = buildProgram(contextForHelp(), '0').commands.find((one) => one.name() === 'jobs');
    const documented = command === undefined ? '' : (notesOf(command)?.json ?? '');
    const fields = Object.keys((jobs as object[])[0] ?? {});
    expect(fields).toHaveLength(23);
    for (const field of fields) expect(documented).toMatch(new RegExp(`\\b${field}\\b`));
  });

  test('every line of a snapshot is JSON with one field', async () => {
    const { stdout } = await world.run('snapshot', '--json');
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => Object.keys(JSON.parse(line) as object).length)).toEqual(lines.map(() => 1));
  });

  test('a bundle that is printed is the bundle and nothing else', async () => {
    const { stdout } = await world.run('bundle', '1', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ job: { id: 1 } });
  });

  test('it is never preceded by a warning or followed by a bar', async () => {
    world.types = 'yes';
    const { stderr } = await world.run('verify', '--json');
    expect(stderr).toBe('');
  });
});

test('a long run shows its bar to whoever is at the terminal, and leaves nothing of it behind', async () => {
  world.types = 'yes';
  const { stderr } = await world.run('verify');
  expect(stderr).toContain('verifying [');
  expect(stderr.endsWith('\r\u001b[2K')).toBe(true);
});
