/** Edits what a store answered and looks whether the store noticed. */
import { isDeepStrictEqual } from 'node:util';
import type { Claims } from './claims.ts';
import { vandalise } from './forgeries.ts';
import type { Call } from './step.ts';
import type { World } from './world.ts';

/** The objects that a call was answered with, where they tell of jobs. */
function answersOf(call: Call): readonly object[] {
  switch (call.verb) {
    case 'enqueue':
    case 'begin':
    case 'extend':
      return call.verdicts;
    case 'claim':
      return call.claimed;
    case 'settle':
      return [...call.verdicts, ...call.claimed];
    case 'cancel':
    case 'promote':
    case 'dismiss':
    case 'reconcile':
    case 'redrive':
      return [call.verdict];
    case 'transact':
      return call.answer === 'threw' ? [] : [call.answer];
    default:
      return [];
  }
}

/** Spoils the answers of a call that was audited, and reads of the same jobs; the store must stand as it stood. */
export async function auditSharing(call: Call, world: World, claims: Claims): Promise<void> {
  const answers = answersOf(call);
  const ids = answers.flatMap((answer) => {
    const job = 'job' in answer ? (answer.job as { readonly id: number } | null) : null;
    return job === null ? [] : [job.id];
  });
  for (const answer of answers) vandalise(answer);
  for (const id of new Set(ids)) {
    const view = world.views.get(id);
    if (view === undefined) continue;
    const read = await world.store.get(id);
    claims.hold(
      'sharing',
      isDeepStrictEqual(read, view),
      () => `job ${id} changed when an answer was edited`,
    );
    if (read !== null) vandalise(read);
    const evidence = await world.store.evidence(id);
    if (evidence !== null) {
      const kept = isDeepStrictEqual(evidence.job, view.job);
      claims.hold('sharing', kept, () => `job ${id} changed when a read of it was edited`);
      for (const entry of evidence.chain.entries) entry.fill(0);
      vandalise(evidence.job);
    }
  }
}
