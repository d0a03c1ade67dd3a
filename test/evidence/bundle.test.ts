import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/core/canonical.ts';
import { limits } from '../../src/core/limits.ts';
import {
  type BundleContents,
  EvidenceError,
  encodeEntry,
  makeBundle,
  sha256Hex,
  verifyBundle,
} from '../../src/evidence/index.ts';
import { SAMPLES } from './facts.ts';
import { moves, PAYLOAD, play, retriedAndRunning, submissions } from './histories.ts';

const { job, chain } = retriedAndRunning();
const REPORT = 'report 2';
const LATE = 'it worked after all';
const contents: BundleContents = {
  job,
  payload: PAYLOAD,
  chain,
  texts: {
    [sha256Hex(REPORT)]: REPORT,
    [sha256Hex(LATE)]: LATE,
    [sha256Hex('nobody said this')]: 'nobody said this',
  },
  testimony: [
    { tick: 1_050, worker: 'w-0', token: job.token - 1, outcome: 'succeeded', digest: sha256Hex(LATE) },
  ],
};
const bundle = makeBundle(contents);
const text = JSON.stringify(bundle);

type Fields = Record<string, unknown>;

/** The bundle with fields changed and its digest made to fit, as a forger would. */
function forged(changes: Fields): Fields {
  const { digest: _digest, ...rest } = { ...bundle, ...changes };
  const canonical = canonicalJson(rest, { maxDepth: 20, maxBytes: 2 ** 30 });
  if (!canonical.ok) throw new Error(`${canonical.path} ${canonical.problem}`);
  return { ...rest, digest: sha256Hex(`custody.bundle.v1\0${canonical.text}`) };
}

function said(input: unknown): string {
  const { ok, faults } = verifyBundle(input);
  expect(ok).toBe(faults.length === 0);
  return faults.map(({ code, at, detail }) => `${code}${at === null ? '' : ` ${at}`}: ${detail}`).join('; ');
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

test('a bundle verifies as text and as a value, and gives back what was put in, without texts that nothing names', () => {
  const { [sha256Hex('nobody said this')]: _unnamed, ...texts } = contents.texts;
  expect(Object.keys(texts)).toHaveLength(2);
  for (const input of [text, `${text}\n`, bundle, JSON.parse(text)]) {
    expect(verifyBundle(input)).toEqual({
      ok: true,
      entries: 5,
      root: chain.root,
      faults: [],
      contents: { ...contents, texts },
    });
  }
});

test('a bundle is in canonical order, so that its digest covers what is read', () => {
  const canonical = canonicalJson(bundle, { maxDepth: 8, maxBytes: limits.bundleBytesMax });
  expect(canonical).toEqual({ ok: true, text });
});

test('a bundle shares nothing with what it was made of', () => {
  const given = {
    ...contents,
    testimony: contents.testimony.map((report) => ({ ...report, more: 'not taken' })),
  };
  expect(JSON.stringify(makeBundle(given))).toBe(text);
  expect(bundle.job).not.toBe(job);
});

test('every history that decide makes bundles and verifies', { timeout: 30_000 }, () => {
  fc.assert(
    fc.property(submissions, moves, (submission, played) => {
      const last = play(submission, played).at(-1);
      if (last === undefined) return;
      const made = makeBundle({ ...contents, job: last.job, chain: last.chain, texts: {}, testimony: [] });
      expect(said(JSON.stringify(made))).toBe('');
    }),
    { numRuns: 100 },
  );
});

test('every flipped bit of the text is found', { timeout: 60_000 }, () => {
  const bytes = Buffer.from(text);
  const missed: number[] = [];
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    if (verifyBundle(flipped.toString('latin1')).ok) missed.push(bit);
  }
  expect(missed).toEqual([]);
});

test('every truncation is found, and so is anything behind the end but one line feed', {
  timeout: 30_000,
}, () => {
  for (let length = 0; length < text.length; length++)
    expect(verifyBundle(text.slice(0, length)).ok).toBe(false);
  for (const tail of [' ', '\n\n', '\0', '{}', ',']) expect(verifyBundle(text + tail).ok).toBe(false);
});

describe('one bundle has one text:', () => {
  const canonical =
    'bundle_malformed: bundle must be canonical JSON: no spaces, no repeated keys, keys in order';
  test.each([
    ['a repeated key that parsers disagree about', text.replace('{', `{"payload":"{}",`)],
    ['spaces', JSON.stringify(bundle, null, 2)],
    ['another order of keys', JSON.stringify(Object.fromEntries(Object.entries(bundle).reverse()))],
    ['an escape where none is needed', text.replace('"charge-card"', '"\\u0063harge-card"')],
    ['a number in another form', text.replace('"priority":0', '"priority":-0')],
  ])('%s is refused', (_, given) => {
    expect(given).not.toBe(text);
    expect(said(given)).toBe(canonical);
  });
});

describe('a forged bundle is refused although its digest fits:', () => {
  const [first, second, third] = bundle.entries;
  const [claim, begin] = bundle.open;
  const digest = sha256Hex(REPORT);
  const report = contents.testimony[0];
  test.each<[string, Fields, string]>([
    [
      'another format',
      { format: 'custody-bundle-v2' },
      'bundle_malformed: bundle.format must be one of custody-bundle-v1',
    ],
    ['a field more', { more: 1 }, 'bundle_malformed: bundle.more is not a field of it'],
    [
      'a job with a field more',
      { job: { ...bundle.job, more: 1 } },
      'bundle_malformed: bundle.job.more is not a field of it',
    ],
    [
      'a job that cannot stand',
      { job: { ...bundle.job, lease: null } },
      'bundle_malformed: bundle.job.lease must be there exactly',
    ],
    ['another payload', { payload: '{}' }, 'payload_mismatch: the payload is not the one'],
    [
      'no payload',
      { payload: null },
      'bundle_malformed: bundle.payload must be text of at most 1048576 bytes',
    ],
    ['a wrong root', { root: '0'.repeat(64) }, 'root_mismatch: root is 000'],
    ['swapped entries', { entries: [second, first, third] }, 'root_mismatch: root is '],
    ['a dropped entry', { entries: [first, second] }, 'root_mismatch: root is '],
    [
      'an entry cut short',
      { entries: [first, base64(encodeEntry(SAMPLES.begun).subarray(0, 9)), third] },
      'undecodable 1: expiresAt needs 1 bytes, and 0 are left',
    ],
    [
      'an unknown tag',
      { entries: [base64(Uint8Array.of(99, 0)), second, third] },
      'undecodable 0: tag 99 is of no type of fact',
    ],
    [
      'a byte behind an entry',
      { entries: [first, second, base64(Uint8Array.of(...encodeEntry(SAMPLES.cancel), 0))] },
      'undecodable 2: entry has 1 bytes behind its last field',
    ],
    [
      'entries that are no list',
      { entries: {} },
      'bundle_malformed: bundle.entries must be a plain list of at most 10000000',
    ],
    [
      'base64 without its padding',
      { entries: ['AA'] },
      'bundle_malformed: bundle.entries[0] must be canonical base64 of at most 131072 bytes',
    ],
    [
      'base64 with stray bits',
      { entries: ['AB=='] },
      'bundle_malformed: bundle.entries[0] must be canonical base64',
    ],
    [
      'base64 for addresses',
      { entries: ['__-_'] },
      'bundle_malformed: bundle.entries[0] must be canonical base64',
    ],
    [
      'base64 with a line feed',
      { entries: ['AAAA\n'] },
      'bundle_malformed: bundle.entries[0] must be canonical base64',
    ],
    [
      'an entry that is no text',
      { entries: [first, 7] },
      'bundle_malformed: bundle.entries[1] must be canonical base64',
    ],
    [
      'an absurdly long entry',
      { entries: ['A'.repeat(174_768)] },
      'bundle_malformed: bundle.entries[0] must be canonical base64',
    ],
    [
      'the longest entry, of nothing',
      { entries: [`${'A'.repeat(174_763)}=`] },
      'undecodable 0: tag 0 is of no type of fact',
    ],
    ['an open delivery in another order', { open: [begin, claim] }, 'open_delivery 3: an open delivery is'],
    [
      'an open delivery that closes',
      { open: [base64(encodeEntry(SAMPLES.cancel))] },
      'bundle_malformed: bundle.open[0] must be a claim or a begin',
    ],
    [
      'an open delivery that cannot be read',
      { open: [claim, 'AAAA'] },
      'bundle_malformed: bundle.open[1] cannot be read: tag 0 is of no type of fact',
    ],
    [
      'an open delivery of three',
      { open: [claim, begin, begin] },
      'bundle_malformed: bundle.open must be a plain list of at most 2',
    ],
    [
      'another text under a digest',
      { texts: { [digest]: 'other' } },
      `text_mismatch: texts.${digest} is not the text with this digest`,
    ],
    [
      'a text that nothing names',
      { texts: { [sha256Hex('x')]: 'x' } },
      `text_mismatch: texts.${sha256Hex('x')} is named by no entry and no testimony`,
    ],
    [
      'a text under a name',
      { texts: { reason: 'x' } },
      'bundle_malformed: bundle.texts.reason must be named by 64 lower-case hexadecimal digits',
    ],
    [
      'a text that is none',
      { texts: { [digest]: 7 } },
      `bundle_malformed: bundle.texts.${digest} must be text of at most 1048576 bytes`,
    ],
    ['texts that are no record', { texts: [] }, 'bundle_malformed: bundle.texts must be a plain object'],
    [
      'a text too long in bytes',
      { texts: { [digest]: '€'.repeat(400_000) } },
      `bundle_malformed: bundle.texts.${digest} must be text of at most`,
    ],
    [
      'testimony under a token never granted',
      { testimony: [{ ...report, token: job.token + 1 }] },
      'testimony_mismatch: testimony[0].token is',
    ],
    [
      'testimony with another outcome',
      { testimony: [{ ...report, outcome: 'great' }] },
      'bundle_malformed: bundle.testimony[0].outcome must be one of succeeded',
    ],
    [
      'testimony without a worker',
      { testimony: [{ ...report, worker: '' }] },
      'bundle_malformed: bundle.testimony[0].worker must be text of 1 to 128',
    ],
    [
      'testimony with a field more',
      { testimony: [{ ...report, chained: true }] },
      'bundle_malformed: bundle.testimony[0].chained is not a field of it',
    ],
  ])('%s', (_, changes, expected) => {
    expect(said(forged(changes))).toContain(expected);
    expect(said(JSON.stringify(JSON.parse(canonicalText(forged(changes)))))).toContain(expected);
  });

  function canonicalText(value: unknown): string {
    const canonical = canonicalJson(value, { maxDepth: 20, maxBytes: 2 ** 30 });
    return canonical.ok ? canonical.text : '';
  }
});

test('what no chain covers is covered by the digest: the id, the length of the lease, testimony', () => {
  const lease = bundle.job.lease && { ...bundle.job.lease, lengthMs: 5 };
  for (const changes of [
    { job: { ...bundle.job, id: 8 } },
    { job: { ...bundle.job, lease } },
    { testimony: [] },
    { digest: '0'.repeat(64) },
  ]) {
    expect(said({ ...bundle, ...changes })).toBe(
      'bundle_malformed: bundle.digest is not the digest of what the bundle holds',
    );
  }
});

describe('what is no bundle is refused and never throws:', () => {
  const cycle: Fields = {};
  cycle['self'] = cycle;
  test.each<[string, unknown, string]>([
    ['no JSON', '{', 'bundle must be JSON'],
    ['another JSON', '[]', 'bundle must be a plain object'],
    ['an empty record', {}, 'bundle.digest is missing'],
    ['nothing', undefined, 'bundle must not contain undefined'],
    ['a cycle', cycle, 'bundle.self must not contain a cycle'],
    [
      'JSON too deep to be one',
      `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
      'bundle must be a plain object',
    ],
    [
      'a record too deep to be one',
      JSON.stringify({ digest: '', job: [[[[[[[[[0]]]]]]]]] }),
      'bundle.job[0][0][0][0][0][0][0] must not nest deeper than 8',
    ],
    [
      'an accessor',
      {
        ...bundle,
        get job() {
          throw new Error('ran');
        },
      },
      'bundle.job must not contain an accessor',
    ],
  ])('%s', (_, input, expected) => {
    const { ok, entries, root, contents: read, faults } = verifyBundle(input);
    expect({ ok, entries, root, read }).toEqual({ ok: false, entries: 0, root: null, read: null });
    expect(faults.map(({ detail }) => detail).join()).toContain(expected);
  });

  test('anything at all', () => {
    fc.assert(
      fc.property(
        fc.anything(),
        fc.string(),
        fc.constantFrom(...Object.keys(bundle)),
        (value, noise, field) => {
          expect(verifyBundle(value).ok).toBe(false);
          expect(verifyBundle(noise).ok).toBe(false);
          expect(verifyBundle({ ...bundle, [field]: value }).ok).toBe(false);
        },
      ),
    );
  });

  test('a text above the bound, before it is parsed', () => {
    const huge = ' '.repeat(limits.bundleBytesMax + 1);
    expect(said(huge)).toBe('bundle_malformed: bundle must not be larger than 268435456 bytes');
  });
});

test('a job with faults can be bundled, and the bundle shows them', () => {
  const broken = { ...chain, entries: chain.entries.with(0, Uint8Array.of(99)) };
  expect(said(makeBundle({ ...contents, texts: {}, chain: broken }))).toContain('undecodable 0: tag 99');
});

test('a decision about steps names the texts of their results', () => {
  const result = 'the receipt';
  const steps = [{ key: 'charge', tookPlace: true, result: sha256Hex(result) }];
  const open = { ...chain, entries: [encodeEntry({ ...SAMPLES.reconciled, steps })] };
  const made = makeBundle({
    ...contents,
    chain: open,
    texts: { [sha256Hex(result)]: result },
    testimony: [],
  });
  expect(made.texts).toEqual({ [sha256Hex(result)]: result });
  expect(said(made)).not.toContain('text_mismatch');
});

test('what cannot be bundled exactly is not bundled', () => {
  const refusal = (given: BundleContents): string => {
    try {
      makeBundle(given);
    } catch (error) {
      if (error instanceof EvidenceError) return `${error.code}: ${error.field} ${error.problem}`;
      throw error;
    }
    return 'bundled';
  };
  expect(refusal({ ...contents, payload: '\ud83d' })).toBe(
    'bundle_out_of_bounds: bundle.payload must not contain a lone surrogate',
  );
  const [claim] = chain.open;
  if (claim === undefined) throw new Error('no open delivery');
  expect(refusal({ ...contents, chain: { ...chain, open: [{ ...claim, token: 0 }] } })).toContain(
    'fact_out_of_domain: token',
  );
});
