import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fact } from '../../src/core/facts.ts';
import { limits } from '../../src/core/limits.ts';
import {
  appendFacts,
  type Chain,
  closedAfter,
  EvidenceError,
  encodeEntry,
  entriesOf,
  factsOf,
  genesisRoot,
  newChain,
  nextRoot,
  packLedger,
  sha256Hex,
  submissionText,
  unpackLedger,
} from '../../src/evidence/index.ts';
import { facts, SAMPLES } from './facts.ts';
import { submissionOf } from './histories.ts';

const submission = submissionOf();

/** The root as the reference page describes it, in other words than the code's. */
function rootOf(entries: readonly Uint8Array[]): string {
  let root = createHash('sha256')
    .update('custody.submission.v1\0')
    .update(submissionText(submission))
    .digest();
  for (const entry of entries) {
    root = createHash('sha256').update('custody.ledger.entry.v1\0').update(root).update(entry).digest();
  }
  return root.toString('hex');
}

function code(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof EvidenceError) return `${error.code}: ${error.field} ${error.problem}`;
    throw error;
  }
  return 'no error';
}

test('a chain begins from every field of its submission', () => {
  const roots = new Set([genesisRoot(submission)]);
  for (const field of Object.keys(submission)) roots.add(genesisRoot({ ...submission, [field]: 'other' }));
  expect(roots.size).toBe(1 + Object.keys(submission).length);
  expect(newChain(submission)).toEqual({ root: rootOf([]), entries: [], open: [] });
});

test('a submission that JSON cannot hold begins no chain', () => {
  expect(code(() => newChain({ ...submission, startAt: Number.NaN }))).toBe(
    'submission_not_canonical: submission.startAt must not contain a number that is not finite',
  );
});

test('however facts are divided into decisions, the chain is the same, and holds them all in order', {
  timeout: 30_000,
}, () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(facts, fc.boolean()), { maxLength: 12 }), (divided) => {
      const all = divided.map(([fact]) => fact);
      let chain = newChain(submission);
      let together: Fact[] = [];
      for (const [fact, ends] of divided) {
        together.push(fact);
        if (!ends) continue;
        chain = appendFacts(chain, together);
        together = [];
      }
      chain = appendFacts(chain, together);
      expect(chain).toEqual(appendFacts(newChain(submission), all));
      expect(factsOf(chain)).toEqual(all);
      expect(entriesOf(chain)).toEqual(all.map(encodeEntry));
      expect(chain.root).toBe(rootOf(chain.entries));
      expect(closedAfter(chain).root).toBe(rootOf(all.map(encodeEntry)));
    }),
  );
});

describe('the open delivery', () => {
  const { claimed, begun, settled, cancel } = SAMPLES;
  const types = (given: readonly Fact[]): unknown => {
    const chain = appendFacts(newChain(submission), given);
    return [chain.entries.length, chain.open.map((fact) => fact.type)];
  };
  test.each<[string, readonly Fact[], unknown]>([
    ['a claim stays open', [claimed], [0, ['claimed']]],
    ['a claim and its begin stay open', [claimed, begun], [0, ['claimed', 'begun']]],
    ['a settlement closes both and itself', [claimed, begun, settled], [3, []]],
    ['a cancellation closes a claim', [claimed, cancel], [2, []]],
    ['a further claim closes what was open', [claimed, begun, claimed], [2, ['claimed']]],
    ['a begin after a closed claim is open alone', [claimed, SAMPLES.clock_corrected, begun], [2, ['begun']]],
    ['a second begin closes the first', [claimed, begun, begun], [2, ['begun']]],
    ['a begin after a begin alone closes it', [begun, begun], [1, ['begun']]],
  ])('%s', (_, given, expected) => {
    expect(types(given)).toEqual(expected);
  });

  test('is not under the root before it is closed, and closing it once is enough', () => {
    const chain = appendFacts(newChain(submission), [claimed, begun]);
    expect(chain.root).toBe(genesisRoot(submission));
    const closed = closedAfter(chain);
    expect(closed.open).toEqual([]);
    expect(closedAfter(closed)).toBe(closed);
  });
});

test('facts out of their domain append nothing, not even to the open delivery', () => {
  const chain = appendFacts(newChain(submission), [SAMPLES.claimed]);
  const worker = '\u0000';
  for (const bad of [
    { ...SAMPLES.begun, worker },
    { ...SAMPLES.settled, worker },
    { ...SAMPLES.claimed, worker },
  ]) {
    expect(code(() => appendFacts(chain, [SAMPLES.cancel, bad]))).toContain('fact_out_of_domain: worker');
  }
  expect(chain).toEqual(appendFacts(newChain(submission), [SAMPLES.claimed]));
});

test('a store that keeps closed entries elsewhere gets the same root and only the new entries', () => {
  const whole = appendFacts(newChain(submission), [SAMPLES.claimed, SAMPLES.begun, SAMPLES.settled]);
  const more = [SAMPLES.claimed, SAMPLES.cancel];
  const tail = appendFacts({ ...whole, entries: [] }, more);
  const full = appendFacts(whole, more);
  expect(tail.root).toBe(full.root);
  expect(tail.entries).toEqual(full.entries.slice(3));
});

test('changing a bit, dropping or swapping entries changes the root', { timeout: 30_000 }, () => {
  const entries = [SAMPLES.claimed, SAMPLES.begun, SAMPLES.settled].map(encodeEntry);
  const root = rootOf(entries);
  const rootAfter = (changed: readonly Uint8Array[]): string =>
    changed.reduce(nextRoot, genesisRoot(submission));
  expect(rootAfter(entries)).toBe(root);
  for (const [index, entry] of entries.entries()) {
    for (let bit = 0; bit < entry.length * 8; bit++) {
      const flipped = new Uint8Array(entry);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(rootAfter(entries.with(index, flipped))).not.toBe(root);
    }
    expect(rootAfter(entries.toSpliced(index, 1))).not.toBe(root);
    expect(rootAfter([...entries.toSpliced(index, 1), entry]) === root).toBe(index === 2);
  }
});

test('reading the facts of a damaged chain names the entry', () => {
  const chain: Chain = { ...newChain(submission), entries: [encodeEntry(SAMPLES.cancel), Uint8Array.of(99)] };
  expect(code(() => factsOf(chain))).toBe('entry_undecodable: entries[1].tag 99 is of no type of fact');
});

describe('a ledger', () => {
  const entries = [SAMPLES.claimed, SAMPLES.begun, SAMPLES.reconciled].map(encodeEntry);
  const packed = packLedger(entries);
  const problem = (bytes: Uint8Array): string => {
    const unpacked = unpackLedger(bytes);
    return unpacked.ok ? `${unpacked.entries.length}` : `${unpacked.field} ${unpacked.problem}`;
  };

  test('comes back as packed, and two behind one another are one', () => {
    expect(unpackLedger(packed)).toEqual({ ok: true, entries });
    expect(unpackLedger(Buffer.concat([packed, packed]))).toEqual({
      ok: true,
      entries: [...entries, ...entries],
    });
    expect(unpackLedger(packLedger([]))).toEqual({ ok: true, entries: [] });
  });

  test('owns its entries: writing into the bytes changes none', () => {
    const bytes = Buffer.from(packed);
    const unpacked = unpackLedger(bytes);
    bytes.fill(0);
    expect(unpacked).toEqual({ ok: true, entries });
  });

  test('cut short anywhere is refused, except between two entries', () => {
    const ends = [0];
    for (const entry of entries) ends.push((ends.at(-1) ?? 0) + 4 + entry.length);
    for (let length = 0; length <= packed.length; length++) {
      expect(unpackLedger(packed.subarray(0, length)).ok, `${length}`).toBe(ends.includes(length));
    }
  });

  test('with an absurd length is refused before anything is allocated', () => {
    const before = process.memoryUsage().arrayBuffers;
    expect(problem(Uint8Array.of(255, 255, 255, 255, 1))).toBe(
      'ledger[0] must be 1 to 131072 bytes long, and says 4294967295',
    );
    expect(problem(Uint8Array.of(0, 0, 2, 0, 1))).toBe('ledger[0] needs 131072 bytes, and 1 are left');
    expect(problem(Uint8Array.of(1, 0, 0, 0, 1, 0, 0, 0, 0))).toContain('ledger[1] must be 1 to 131072');
    expect(problem(Uint8Array.of(1, 0))).toBe('ledger[0] ends within its length');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });

  test('of random bytes never throws, and what is accepted packs to the same bytes', () => {
    const framed = fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 5 }).map(packLedger);
    fc.assert(
      fc.property(fc.oneof(framed, fc.uint8Array()), (bytes) => {
        const unpacked = unpackLedger(bytes);
        expect(unpacked.ok ? packLedger(unpacked.entries) : bytes).toEqual(bytes);
      }),
    );
  });

  test('takes no entry that could not be read back', { timeout: 30_000 }, () => {
    expect(code(() => packLedger([new Uint8Array()]))).toBe(
      'ledger_out_of_bounds: ledger[0] must be 1 to 131072 bytes long',
    );
    expect(code(() => packLedger([new Uint8Array(limits.entryBytesMax + 1)]))).toContain('ledger[0]');
    const longest = new Uint8Array(limits.entryBytesMax).fill(1);
    const unpacked = unpackLedger(packLedger([longest]));
    expect(unpacked.ok && sha256Hex(unpacked.entries[0] ?? '')).toBe(sha256Hex(longest));
  });
});

test('a digest is that of the UTF-8 bytes', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(sha256Hex('€')).toBe(sha256Hex(Uint8Array.of(0xe2, 0x82, 0xac)));
});
