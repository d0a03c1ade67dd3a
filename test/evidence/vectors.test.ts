import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DECIDED, DECIDED_BY } from '../../src/core/facts.ts';
import { CAUSES, OUTCOMES } from '../../src/core/job.ts';
import {
  BUNDLE_DOMAIN,
  BUNDLE_FAULTS,
  decodeEntry,
  ENTRY_DOMAIN,
  encodeEntry,
  FACT_TYPES,
  REPLAY_FAULTS,
  SUBMISSION_DOMAIN,
  VERIFY_FAULTS,
  verifyBundle,
} from '../../src/evidence/index.ts';
import { SAMPLES } from './facts.ts';
import { makeVectors } from './vectors.ts';

const FILE = new URL('../vectors/evidence.json', import.meta.url);

// CUSTODY_WRITE_VECTORS=1 npx vitest run test/evidence/vectors.test.ts && npx biome format --write test/vectors/evidence.json
if (process.env['CUSTODY_WRITE_VECTORS'] === '1') writeFileSync(FILE, JSON.stringify(makeVectors(), null, 2));

const published: unknown = JSON.parse(readFileSync(FILE, 'utf8'));

test('published bytes never change: the code still makes every vector', () => {
  expect(makeVectors()).toEqual(published);
});

test('the published bundle verifies from its text alone', () => {
  const { bundle } = published as { readonly bundle: string };
  expect(verifyBundle(bundle)).toMatchObject({ ok: true, faults: [] });
});

const page = readFileSync(new URL('../../docs/reference/evidence.md', import.meta.url), 'utf8');

test('the reference page lists every tag with its fields in the order they are written', () => {
  const rows = [...page.matchAll(/^\| (\d+) \| `(\w+)` \| (.*) \|$/gm)].map(([, tag, type, fields]) => [
    Number(tag),
    type,
    [...(fields ?? '').matchAll(/(?:^|, )`(\w+)`/g)].map(([, field]) => field),
  ]);
  const written = FACT_TYPES.map((type, index) => {
    const decoded = decodeEntry(encodeEntry(SAMPLES[type]));
    const fields = Object.keys(decoded.ok ? decoded.fact : {});
    expect(fields.slice(0, 4)).toEqual(['type', 'tick', 'expiresAt', 'to']);
    return [index + 1, type, fields.slice(4)];
  });
  expect(rows).toEqual(written);
});

test('the reference page lists every code in its order', () => {
  const lists = [CAUSES, OUTCOMES, DECIDED, DECIDED_BY, ['deadline', 'lease']];
  for (const list of lists) expect(page).toContain(`| ${list.map((word) => `\`${word}\``).join(', ')} |`);
});

test('the worked example of the reference page is the published entry', () => {
  const example = [...page.matchAll(/^ {4}((?:[0-9a-f]{2} )+) /gm)].map(([, bytes]) => bytes).join('');
  const { entries } = published as { readonly entries: readonly { readonly entry: string }[] };
  expect(example.replaceAll(' ', '')).toBe(entries[0]?.entry);
});

test('the reference page names every domain and every fault', () => {
  const domains = [SUBMISSION_DOMAIN, ENTRY_DOMAIN, BUNDLE_DOMAIN].map((domain) =>
    domain.replace('\0', '\\0'),
  );
  for (const word of [...domains, ...REPLAY_FAULTS, ...VERIFY_FAULTS, ...BUNDLE_FAULTS]) {
    expect(page).toContain(`\`${word}\``);
  }
});
