import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fact } from '../../src/core/facts.ts';
import { limits } from '../../src/core/limits.ts';
import { decodeEntry, EvidenceError, encodeEntry, FACT_TYPES } from '../../src/evidence/index.ts';
import { facts, SAMPLES } from './facts.ts';

/** What encoding throws, as text. */
function refusal(fact: unknown): string {
  try {
    encodeEntry(fact as Fact);
  } catch (error) {
    if (error instanceof EvidenceError) return `${error.code}: ${error.field} ${error.problem}`;
    throw error;
  }
  return 'encoded';
}

function problem(bytes: Uint8Array): string {
  const decoded = decodeEntry(bytes);
  return decoded.ok ? 'decoded' : `${decoded.field} ${decoded.problem}`;
}

/** The entry of the fact that bytes decode to, or null when they decode to none. */
function encodedAgain(bytes: Uint8Array): Uint8Array | null {
  const decoded = decodeEntry(bytes);
  return decoded.ok ? encodeEntry(decoded.fact) : null;
}

/** The entry with bytes replaced from an offset on. */
function patched(entry: Uint8Array, at: number, ...bytes: number[]): Uint8Array {
  const copy = new Uint8Array(entry);
  copy.set(bytes, at);
  return copy;
}

test('a fact of any type comes back from its entry as it was, and its entry from it', {
  timeout: 30_000,
}, () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(facts, (fact) => {
      const entry = encodeEntry(fact);
      expect(decodeEntry(entry)).toEqual({ ok: true, fact });
      expect(encodedAgain(entry)).toEqual(entry);
      seen.add(fact.type);
    }),
    { numRuns: 2000 },
  );
  expect([...seen].sort()).toEqual([...FACT_TYPES].sort());
});

test('no two types of fact share a tag, and none has the tag of zeroed bytes', () => {
  const tags = FACT_TYPES.map((type) => encodeEntry(SAMPLES[type])[0]);
  expect(tags).toEqual(FACT_TYPES.map((_, index) => index + 1));
});

test('an entry owns its bytes: writing into it changes no entry made later', () => {
  const first = encodeEntry(SAMPLES.claimed);
  const kept = new Uint8Array(first);
  first.fill(255);
  expect(encodeEntry(SAMPLES.claimed)).toEqual(kept);
});

test('a decoded fact owns its values: writing into the bytes it was read from does not change it', () => {
  const entry = encodeEntry(SAMPLES.settled);
  const decoded = decodeEntry(entry);
  entry.fill(255);
  expect(decoded).toEqual({ ok: true, fact: SAMPLES.settled });
});

test('an entry in the middle of a larger buffer is read alone', () => {
  const entry = encodeEntry(SAMPLES.reconciled);
  const larger = new Uint8Array(entry.length + 20).fill(7);
  larger.set(entry, 9);
  expect(decodeEntry(larger.subarray(9, 9 + entry.length))).toEqual({ ok: true, fact: SAMPLES.reconciled });
});

test('an entry cut short anywhere, or with a byte behind it, is refused', () => {
  for (const type of FACT_TYPES) {
    const entry = encodeEntry(SAMPLES[type]);
    for (let length = 0; length < entry.length; length++) {
      expect(decodeEntry(entry.subarray(0, length)).ok, `${type} cut to ${length}`).toBe(false);
    }
    expect(problem(Uint8Array.of(...entry, 0))).toBe('entry has 1 bytes behind its last field');
  }
});

test('every flipped bit is refused or gives another fact with exactly those bytes: no two entries mean the same', {
  timeout: 30_000,
}, () => {
  for (const type of FACT_TYPES) {
    const entry = encodeEntry(SAMPLES[type]);
    for (let bit = 0; bit < entry.length * 8; bit++) {
      const at = bit >> 3;
      const flipped = patched(entry, at, (entry[at] ?? 0) ^ (1 << (bit & 7)));
      const decoded = decodeEntry(flipped);
      if (!decoded.ok) continue;
      expect(decoded.fact).not.toEqual(SAMPLES[type]);
      expect(encodeEntry(decoded.fact)).toEqual(flipped);
    }
  }
});

test('random bytes never throw, and what is accepted has no other encoding', { timeout: 30_000 }, () => {
  const tagged = fc
    .tuple(fc.integer({ min: 0, max: 15 }), fc.uint8Array({ maxLength: 400 }))
    .map(([tag, rest]) => Uint8Array.of(tag, ...rest));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), tagged), (bytes) => {
      expect(encodedAgain(bytes) ?? bytes).toEqual(bytes);
    }),
    { numRuns: 3000 },
  );
});

test('an entry above the bound is refused before it is looked into', () => {
  const huge = new Uint8Array(limits.entryBytesMax + 1);
  huge.set(encodeEntry(SAMPLES.claimed));
  expect(problem(huge)).toBe('entry must not be longer than 131072 bytes, and has 131073');
});

test('no bytes and unknown tags are refused by name', () => {
  expect(problem(new Uint8Array())).toBe('tag is missing');
  expect(problem(Uint8Array.of(0))).toBe('tag 0 is of no type of fact');
  expect(problem(Uint8Array.of(14, 0, 0))).toBe('tag 14 is of no type of fact');
});

describe('bytes that no fact encodes to are refused, naming field and bound:', () => {
  // tag, tick (8), expiresAt (1 + 8), to, then the fields of the type
  const claimed = encodeEntry(SAMPLES.claimed);
  const cancel = encodeEntry({ ...SAMPLES.cancel, actor: 'abcd' });
  const reconciled = encodeEntry(SAMPLES.reconciled);
  const steps = reconciled.length - 1 - 8 - 1 - (2 + 4 + 1 + 1) - (2 + 6 + 1 + 1 + 32) - 2;
  test.each([
    [
      'a tick above 2^53-1',
      patched(claimed, 1, 0, 0, 0, 0, 0, 0, 32, 0),
      'tick must be a whole number from 0 to 9007199254740991',
    ],
    ['a presence byte of 2', patched(claimed, 9, 2), 'expiresAt must be 0 or 1, and is 2'],
    [
      'the state that is never stored',
      patched(claimed, 18, 5),
      'to has the unknown code 5; it must be one of 0, 1, 2, 3, 4, 6, 7, 8, 9',
    ],
    [
      'a state past the last',
      patched(claimed, 18, 10),
      'to has the unknown code 10; it must be one of 0, 1, 2, 3, 4, 6, 7, 8, 9',
    ],
    [
      'a name longer than its bound',
      patched(claimed, 19, 129, 0),
      'worker must not be longer than 128 bytes, and says 129',
    ],
    [
      'an absurd length',
      patched(claimed, 19, 255, 255),
      'worker must not be longer than 128 bytes, and says 65535',
    ],
    [
      'a name longer than what is left',
      patched(claimed, 19, 128, 0),
      'worker needs 128 bytes, and 16 are left',
    ],
    [
      'an empty name',
      patched(claimed, 19, 0, 0),
      'worker must be text of 1 to 128 UTF-8 bytes without control characters or lone surrogates',
    ],
    [
      'a control character',
      patched(claimed, 21, 27),
      'worker must be text of 1 to 128 UTF-8 bytes without control characters or lone surrogates',
    ],
    ['a stray continuation byte', patched(claimed, 21, 0x80), 'worker must be well-formed UTF-8'],
    ['an overlong slash', patched(cancel, 13, 0xc0, 0xaf), 'actor must be well-formed UTF-8'],
    ['an encoded surrogate', patched(cancel, 13, 0xed, 0xa0, 0x80), 'actor must be well-formed UTF-8'],
    ['token 0', patched(claimed, 24, 0), 'token must be a whole number from 1 to 9007199254740991'],
    ['delivery 0', patched(claimed, 32, 0), 'delivery must be a whole number from 1 to 11000'],
    [
      'more deliveries than there can be',
      patched(claimed, 32, 255, 255, 255, 255),
      'delivery must be a whole number from 1 to 11000',
    ],
    ['a boolean of 255', patched(claimed, 36, 255), 'idempotent must be 0 or 1, and is 255'],
    [
      'an absurd count',
      patched(reconciled, steps, 255, 255),
      'steps must be a list of at most 256, and says 65535',
    ],
    [
      'a count larger than what follows',
      patched(reconciled, steps, 0, 1),
      'steps[2].key must not be longer than 256 bytes',
    ],
  ])('%s', (_, bytes, expected) => {
    expect(problem(bytes)).toContain(expected);
  });
});

describe('a fact out of its domain is refused, naming field and bound:', () => {
  const { worker: _worker, ...nameless } = SAMPLES.claimed;
  const verdict = { key: 'a', tookPlace: true, result: null };
  const safe = '9007199254740991';
  const hex = 'must be 64 lower-case hexadecimal digits';
  test.each<[string, unknown, string]>([
    ['an unknown type', { ...SAMPLES.claimed, type: 'constructor' }, 'type must be one of claimed, begun'],
    ['a negative tick', { ...SAMPLES.claimed, tick: -1 }, `tick must be a whole number from 0 to ${safe}`],
    ['a fraction', { ...SAMPLES.claimed, tick: 0.5 }, `tick must be a whole number from 0 to ${safe}`],
    ['NaN', { ...SAMPLES.claimed, tick: Number.NaN }, `tick must be a whole number from 0 to ${safe}`],
    ['2^53', { ...SAMPLES.claimed, token: 2 ** 53 }, `token must be a whole number from 1 to ${safe}`],
    [
      'a number as text',
      { ...SAMPLES.claimed, token: '12' },
      `token must be a whole number from 1 to ${safe}`,
    ],
    [
      'the state that is never stored',
      { ...SAMPLES.claimed, to: 5 },
      'to must be one of 0, 1, 2, 3, 4, 6, 7, 8, 9',
    ],
    ['no state', { ...SAMPLES.claimed, to: null }, 'to must be one of 0, 1, 2, 3, 4, 6, 7, 8, 9'],
    ['an unknown cause', { ...SAMPLES.lapsed, cause: 'boredom' }, 'cause must be one of reported'],
    ['a missing field', nameless, 'worker must be text of 1 to 128 UTF-8 bytes'],
    [
      'undefined where null is meant',
      { ...SAMPLES.claimed, expiresAt: undefined },
      'expiresAt must be a whole number',
    ],
    ['a field of another type', { ...SAMPLES.claimed, attempt: 1 }, 'attempt has no place in an entry'],
    [
      'a name with a control character',
      { ...SAMPLES.claimed, worker: 'a\nb' },
      'worker must be text of 1 to 128',
    ],
    ['a lone surrogate', { ...SAMPLES.claimed, worker: '\ud83d' }, 'worker must be text of 1 to 128'],
    [
      'a name of 129 bytes',
      { ...SAMPLES.claimed, worker: 'é'.repeat(65) },
      'worker must be text of 1 to 128',
    ],
    ['a boolean that is a number', { ...SAMPLES.claimed, idempotent: 1 }, 'idempotent must be true or false'],
    [
      'an upper-case digest',
      { ...SAMPLES.step_done, result: SAMPLES.step_done.result.toUpperCase() },
      `result ${hex}`,
    ],
    ['a digest with a line feed', { ...SAMPLES.step_done, result: `${'a'.repeat(64)}\n` }, `result ${hex}`],
    [
      'an attempt past its bound',
      { ...SAMPLES.begun, attempt: 10_001 },
      'attempt must be a whole number from 1 to 10000',
    ],
    [
      'a delay past its bound',
      { ...SAMPLES.settled, delayMs: limits.backoffMsMax + 1 },
      'delayMs must be a whole number',
    ],
    ['steps that are no list', { ...SAMPLES.reconciled, steps: {} }, 'steps must be a list of at most 256'],
    [
      'a step that is nothing',
      { ...SAMPLES.reconciled, steps: [null] },
      'steps[0].key must be text of 1 to 256',
    ],
    [
      'a step with another field',
      { ...SAMPLES.reconciled, steps: [{ ...verdict, why: '' }] },
      'steps[0].why has no place in an entry',
    ],
    [
      '257 steps',
      { ...SAMPLES.reconciled, steps: Array.from({ length: 257 }, () => verdict) },
      'steps must be a list of at most 256',
    ],
  ])('%s', (_, fact, expected) => {
    expect(refusal(fact)).toContain(`fact_out_of_domain: ${expected}`);
  });
});

test('the first field at fault is named, in the order of the encoding', () => {
  expect(refusal({ ...SAMPLES.claimed, tick: -1, worker: '' })).toContain(': tick ');
});

test('the error says what to do next', () => {
  const error = new EvidenceError('fact_out_of_domain', 'token', 'must be more');
  expect([error.name, error.message]).toEqual(['EvidenceError', 'token must be more']);
  expect(error.next).toContain('Check the command');
});

test('a decision about as many steps as may be open, with the longest names, fits one entry', () => {
  const steps = Array.from({ length: limits.openStepsMax }, (_, index) => ({
    key: `${index}`.padStart(limits.effectKeyBytesMax, 'k'),
    tookPlace: true,
    result: SAMPLES.step_done.result,
  }));
  const fact: Fact = { ...SAMPLES.reconciled, actor: 'a'.repeat(limits.actorBytesMax), steps };
  const entry = encodeEntry(fact);
  expect(entry.length).toBeLessThanOrEqual(limits.entryBytesMax);
  expect(decodeEntry(entry)).toEqual({ ok: true, fact });
});
