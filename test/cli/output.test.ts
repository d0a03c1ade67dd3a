import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { paint, plain, relativeTime, safeJson, table, timeOf, widthOf } from '../../src/cli/output.ts';
import { startProgress } from '../../src/cli/progress.ts';
import { expectPlain, UNPRINTABLE } from './world.ts';

const bare = { colours: false, columns: null };
const anything = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '\u001b',
      '\u009b',
      '\u202e',
      '\u2028',
      '\u200f',
      '\u{e0041}',
      '\u007f',
      '\ud800',
      '"',
      '\\',
    ),
    fc.string({ unit: 'binary', maxLength: 1 }),
  ),
});

describe('text of jobs', () => {
  test('no character a terminal acts on or hides survives, whatever the text', () => {
    fc.assert(fc.property(anything, (text) => !UNPRINTABLE.test(plain(text))));
  });

  test('JSON output holds none of them either, and still parses to the very same value', () => {
    fc.assert(
      fc.property(anything, anything, (key, text) => {
        const printed = safeJson({ [`k${key}`]: [text] });
        expect(JSON.parse(printed)).toEqual({ [`k${key}`]: [text] });
        expect(UNPRINTABLE.test(printed)).toBe(false);
      }),
    );
  });

  test('a cell cannot break out of its row', () => {
    const text = table(bare, ['A', 'B'], [['one\ntwo\r\u001b[2K', 3]]);
    expect(text.split('\n')).toHaveLength(3);
    expectPlain(text);
  });
});

describe('tables', () => {
  test('wide and combining characters do not shift the columns after them', () => {
    const rows = [
      ['日本', 'x'],
      ['e\u0301a', 'x'],
      ['ab', 'x'],
    ];
    const lines = table(bare, ['K', 'V'], rows).trimEnd().split('\n').slice(1);
    expect(lines.map((line) => widthOf(line.slice(0, line.indexOf('x'))))).toEqual([6, 6, 6]);
  });

  test('a long cell is cut on a terminal and whole in a pipe', () => {
    const long = 'x'.repeat(200);
    expect(table({ colours: false, columns: 80 }, ['K'], [[long]])).not.toContain(long);
    expect(table(bare, ['K'], [[long]])).toContain(long);
  });

  test('no colour is printed where none is wanted', () => {
    expectPlain(table(bare, ['K'], [[{ text: 'red', colour: 'red' }]]));
    expect(paint({ colours: true, columns: 80 }, 'red', 'x')).toBe('\u001b[31mx\u001b[39m');
  });
});

describe('times', () => {
  test('an absolute time never comes without its zone', () => {
    expect(timeOf(1_893_456_000_000)).toBe('2030-01-01T00:00:00.000Z');
  });

  test('a tick that is no time of a calendar is shown as the number it is', () => {
    expect(timeOf(31_000)).toBe('tick 31000');
    expect(timeOf(Number.MAX_SAFE_INTEGER)).toBe(`tick ${Number.MAX_SAFE_INTEGER}`);
  });

  test('what lies ahead is not told as past', () => {
    expect(relativeTime(1_000_000, 400_000)).toBe('in 10m');
    expect(relativeTime(400_000, 1_000_000)).toBe('10m ago');
  });
});

describe('progress', () => {
  test('nothing is drawn where nobody sees it', async () => {
    const written: string[] = [];
    const stderr = { write: async (text: string) => void written.push(text) };
    const progress = startProgress({ stderr, shown: false, now: () => 0 }, 'verifying', 10);
    progress.at(5);
    await progress.end();
    expect(written).toEqual([]);
  });

  test('a bar does not stay behind, and is not drawn for every step', async () => {
    const written: string[] = [];
    let now = 0;
    const stderr = { write: async (text: string) => void written.push(text) };
    const progress = startProgress({ stderr, shown: true, now: () => now }, 'verifying', 10);
    progress.at(1);
    progress.at(2);
    now = 2_000;
    progress.at(5);
    await progress.end();
    expect(written).toHaveLength(3);
    expect(written[1]).toContain('5/10, 2s left');
    expect(written[2]).toBe('\r\u001b[2K');
  });
});
