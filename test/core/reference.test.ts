/** The reference says what the tables of the core say; run `npm run docs` after changing one of them. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { referencePages } from '../../scripts/reference.ts';
import { COMMAND_TABLE } from '../../src/core/commands.ts';
import { DECIDED, DECIDED_BY } from '../../src/core/facts.ts';
import { OUTCOMES } from '../../src/core/job.ts';
import { ADMISSION_REFUSAL_TABLE, REFUSAL_TABLE } from '../../src/core/refusal.ts';
import { STATE_NAMES, STATE_TABLE } from '../../src/core/states.ts';

const pages = referencePages();
const fromRoot = (path: string) => new URL(`../../${path}`, import.meta.url);
const stored = (path: string) => (existsSync(fromRoot(path)) ? readFileSync(fromRoot(path), 'utf8') : '');

test.each(Object.keys(pages))('%s is not stale', (path) => {
  expect(stored(path), 'npm run docs writes it anew').toBe(pages[path]);
});

describe('nothing is left out', () => {
  const states = pages['docs/reference/states.md'] ?? '';
  const refusals = pages['docs/reference/refusals.md'] ?? '';

  test('of the states: each has its row, its code and every move it may make', () => {
    for (const row of STATE_TABLE) {
      expect(states).toContain(
        `| ${row.code} | ${row.name} | ${row.terminal ? 'yes' : 'no'} | ${row.meaning} |`,
      );
      for (const to of row.leaves) expect(states).toContain(`  ${row.name} --> ${STATE_NAMES[to]}\n`);
    }
  });

  test('of the refusals: they stand in the order in which they are looked for', () => {
    const order = [...refusals.matchAll(/^\| \d+ \| `(\w+)` \|/gm)].map((match) => match[1]);
    expect(order).toEqual([...REFUSAL_TABLE, ...ADMISSION_REFUSAL_TABLE].map((row) => row.code));
  });

  test('of the commands: each is listed, and a settlement once for each outcome', () => {
    const listed = COMMAND_TABLE.map((row) => row.command).filter((command) => !command.startsWith('('));
    const settlements = listed.filter((command) => command.startsWith('settle '));
    expect(settlements).toEqual(OUTCOMES.map((outcome) => `settle ${outcome}`));
    for (const command of listed) expect(states).toContain(`| \`${command}\` |`);
    expect(states).toContain('## Lapses');
    expect([...DECIDED, ...DECIDED_BY]).toHaveLength(6);
  });
});
