/** A manual clock moves only when told to, and to no tick that is none. */
import { expect, test } from 'vitest';
import { manualClock } from '../../src/testing/index.ts';

test('a clock stands still until it is moved, and can be set back', () => {
  const clock = manualClock(100);
  expect([clock.now(), clock.now()]).toEqual([100, 100]);
  clock.advance(50);
  expect(clock.now()).toBe(150);
  clock.set(10);
  expect(clock.now()).toBe(10);
  expect(manualClock().now()).toBe(0);
});

test('a clock that is moved to what is no tick throws and stands where it stood', () => {
  const clock = manualClock(100);
  for (const bad of [-1, 0.5, Number.NaN, 2 ** 53]) {
    expect(() => clock.set(bad)).toThrow(RangeError);
    expect(() => clock.advance(bad)).toThrow(RangeError);
    expect(() => manualClock(bad)).toThrow(RangeError);
  }
  expect(() => clock.advance(Number.MAX_SAFE_INTEGER)).toThrow(RangeError);
  expect(clock.now()).toBe(100);
});
