/** The tests of the core notice the mistakes they are there for: with each of them made on purpose, a named test fails. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { MUTANTS } from './mutants.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const config = fileURLToPath(new URL('./vitest.config.ts', import.meta.url));
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');

/** Names of the tests that failed, by mutant. */
const failed = new Map<string, string[]>();
let output = '';

/** Runs every mutant in one other process: nothing of this run, its workers or its coverage reaches it. */
async function runMutants(): Promise<void> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^VITEST|^NODE_(OPTIONS|V8)/.test(name));
  const child = spawn(process.execPath, [vitest, 'run', '--config', config], {
    cwd: root,
    env: Object.fromEntries(inherited),
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      output += text;
    });
  }
  await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  for (const [, json = ''] of output.matchAll(/^failed (\[.+\])$/gm)) {
    const [mutant, file, name] = JSON.parse(json) as [string, string, string];
    failed.set(mutant, [...(failed.get(mutant) ?? []), `${file}: ${name}`]);
  }
}

test('each mistake changes exactly one place of the source', () => {
  for (const { name, file, find, replace } of MUTANTS) {
    const source = readFileSync(join(root, 'src', 'core', file), 'utf8');
    expect([name, source.split(find).length - 1, replace !== find]).toEqual([name, 1, true]);
  }
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});

describe('a mistake does not go unnoticed', () => {
  beforeAll(runMutants, 120_000);

  const cases = MUTANTS.map(({ name, caughtBy: [file, title] }) => ({
    name,
    caughtBy: `test/core/${file}: ${title}`,
  }));
  test.each(cases)('$name fails $caughtBy', ({ name, caughtBy }) => {
    // What the other process said is worth more than an empty list when it did not run at all.
    expect(failed.get(name) ?? output.split('\n')).toContain(caughtBy);
  });
});
