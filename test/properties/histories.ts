/** Runs a random history, audits it step by step, and keeps count of what was reached. */
import type { Action } from './actions.ts';
import { Auditor } from './auditor.ts';
import type { Backend } from './backend.ts';
import type { Claims } from './claims.ts';
import type { Marks } from './marks.ts';
import { perform } from './perform.ts';
import { auditSharing } from './sharing.ts';
import type { Step } from './step.ts';
import { World } from './world.ts';

/** Throws `ClaimBroken` at the first step, or at the end, that breaks a claim. */
export async function runHistory(
  backend: Backend,
  history: readonly Action[],
  claims: Claims,
  marks: Marks,
): Promise<void> {
  const auditor = new Auditor(claims);
  const audit = async (step: Step, world: World): Promise<void> => {
    auditor.check(step, world);
    marks.note(step);
    await auditSharing(step.call, world, claims);
  };
  await playHistory(backend, history, audit, (world) => auditor.end(world));
}

/** Plays a history in a world of its own, hands every step to `watch`, and the world to `end` before it is closed. */
export async function playHistory(
  backend: Backend,
  history: readonly Action[],
  watch: (step: Step, world: World) => Promise<void>,
  end: (world: World) => Promise<void>,
): Promise<void> {
  const world = await World.open(backend);
  try {
    for (const action of history) {
      const before = world.views;
      const now = world.now();
      const call = await perform(world, action);
      if (call === null) continue;
      const seen = await world.observe();
      const at = call.verb === 'clock' ? call.seen : now;
      await watch({ call, now: at, before, after: world.views, ...seen }, world);
    }
    await end(world);
  } finally {
    await world.opened.close();
  }
}
