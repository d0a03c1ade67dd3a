/**
 * One seed for every property, so that a commit passes or fails the same way each time it is tried. New histories are
 * looked for with CUSTODY_PROPERTY_SEED=random (or a number) and CUSTODY_PROPERTY_RUNS, and what they find is fixed.
 */
import fc from 'fast-check';

const asked = process.env['CUSTODY_PROPERTY_SEED'] ?? '20261201';

if (asked !== 'random') {
  const seed = Number(asked);
  if (!Number.isSafeInteger(seed))
    throw new RangeError('CUSTODY_PROPERTY_SEED must be a whole number or "random"');
  fc.configureGlobal({ seed });
}
