/** Properties over random histories: every mix of actions, every claim by its name, and what was reached. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Backend, runsOf } from './backend.ts';
import { CLAIMS, type Claim, Claims } from './claims.ts';
import { runHistory } from './histories.ts';
import { Marks } from './marks.ts';
import { historyOf, PROFILES, type Profile } from './profiles.ts';

const TIMEOUT_MS = 600_000;
const NAMED = (Object.keys(CLAIMS) as Claim[]).map((claim) => [CLAIMS[claim], claim] as const);

/** The properties that any store must have; each failure names the claim it broke and the seed. */
export function propertySuite(backend: Backend): void {
  const claims = new Claims();
  const marks = new Marks();
  const started = new Map<Profile, Promise<void>>();

  /** Each mix runs once, whichever test asks first. */
  const assertOnce = (profile: Profile): Promise<void> => {
    const running = started.get(profile) ?? assertProfile(backend, profile, claims, marks);
    started.set(profile, running);
    return running;
  };
  const runAll = async (): Promise<void> => {
    for (const profile of PROFILES) await assertOnce(profile).catch(() => undefined);
  };

  describe(`${backend.name}: random histories`, () => {
    for (const profile of PROFILES) {
      it(`break no claim: ${profile.name}`, { timeout: TIMEOUT_MS }, async () => {
        await assertOnce(profile);
      });
    }
  });

  describe(`${backend.name}: in random histories`, () => {
    it.each(NAMED)('%s', { timeout: TIMEOUT_MS }, async (_sentence, claim) => {
      await runAll();
      expect(claims.broken.get(claim)).toBeUndefined();
      expect(claims.tested.get(claim) ?? 0).toBeGreaterThan(0);
    });

    it('no state, refusal, lapse or other mark is left unreached', { timeout: TIMEOUT_MS }, async () => {
      await runAll();
      expect(marks.missing()).toEqual([]);
    });
  });
}

async function assertProfile(
  backend: Backend,
  profile: Profile,
  claims: Claims,
  marks: Marks,
): Promise<void> {
  const numRuns = runsOf(backend, profile.runs);
  await fc.assert(
    fc.asyncProperty(historyOf(profile), (history) => runHistory(backend, history, claims, marks)),
    { numRuns, endOnFailure: false },
  );
}
