/** Which job a claim takes: the reference rule of core over all jobs as read, against what the store gave. */
import {
  type Job,
  laneHeads,
  pickForToken,
  revisionIsKnown,
  STATE,
  scheduleIsDue,
  stateIsTerminal,
} from '../../src/core/index.ts';
import type { ClaimRequest, Delivery } from '../../src/store/store.ts';
import { claimOf } from './audit-custody.ts';
import { lapsedAt } from './audit-frame.ts';
import type { Claims } from './claims.ts';
import type { Memory } from './memory-of-history.ts';
import type { Step } from './step.ts';

/** Jobs that may be claimed at `now` under this request, among jobs as time has left them. */
export function claimableOf(
  jobs: readonly Job[],
  request: Pick<ClaimRequest, 'definitions' | 'queues'>,
  paused: ReadonlySet<string>,
  now: number,
): readonly Job[] {
  const unresolved = jobs.filter(({ state }) => !stateIsTerminal(state));
  const heads = laneHeads(unresolved);
  return unresolved.filter(({ id, state, startAt, submission }) => {
    const due = state === STATE.PENDING || (state === STATE.SCHEDULED && scheduleIsDue(now, startAt));
    const known = request.definitions.find(({ kind }) => kind === submission.kind);
    const able = known !== undefined && revisionIsKnown(submission.revision, known.revision);
    const open = submission.internal !== null || !paused.has(submission.queue);
    return due && heads.has(id) && able && open && (request.queues?.includes(submission.queue) ?? true);
  });
}

/** What the rule takes, token by token, and whether it would take one more. */
export function takenBy(
  claimable: readonly Job[],
  tokens: readonly number[],
): { readonly ids: readonly number[]; readonly left: number } {
  let left = claimable;
  const ids = tokens.flatMap((token) => {
    const job = pickForToken(left, token);
    left = left.filter((other) => other !== job);
    return job === null ? [] : [job.id];
  });
  return { ids, left: left.length };
}

export function auditSelection(step: Step, memory: Memory, claims: Claims): void {
  const request = claimOf(step);
  const { call } = step;
  if (request !== null && (call.verb === 'claim' || call.verb === 'settle')) {
    auditClaim(step, request, call.claimed, memory, claims);
  }
  if (call.verb === 'look') {
    const jobs = [...step.after.values()].map(({ job }) => lapsedAt(step, job));
    const claimable = new Set(
      claimableOf(jobs, { definitions: call.definitions }, memory.paused, step.now).map(({ id }) => id),
    );
    for (const [id, reason] of call.explained) {
      claims.hold(
        'explanation',
        claimable.has(id) === (reason === 'claimable'),
        () => `job ${id} is explained as ${reason}`,
      );
    }
  }
}

function auditClaim(
  step: Step,
  request: ClaimRequest,
  claimed: readonly Delivery[],
  memory: Memory,
  claims: Claims,
): void {
  const name = JSON.stringify([request.worker, request.requestId]);
  const told = claimed.map(({ job: { id, token } }) => ({ id, token }));
  const standing = (memory.granted.get(name) ?? []).filter(
    ({ id, token }) => step.after.get(id)?.job.lease?.token === token,
  );
  if (standing.length > 0) {
    const byToken = (a: { token: number }, b: { token: number }): number => a.token - b.token;
    const same = JSON.stringify([...told].sort(byToken)) === JSON.stringify([...standing].sort(byToken));
    claims.hold('claimRepeats', same, () => `told ${JSON.stringify(told)}, not ${JSON.stringify(standing)}`);
    return;
  }
  memory.granted.set(name, told);
  const taken = new Map(claimed.map(({ job }) => [job.id, job]));
  // Claims come last in a commit: what was not claimed stands as it stood then, and what was claimed waited.
  const jobs = [...step.after.values()].map(({ job }): Job => {
    return taken.has(job.id) ? { ...job, state: STATE.PENDING, lease: null } : lapsedAt(step, job);
  });
  const claimable = claimableOf(jobs, request, memory.paused, step.now);
  const expected = takenBy(
    claimable,
    told.map(({ token }) => token),
  );
  const ids = told.map(({ id }) => id);
  const same = JSON.stringify(ids) === JSON.stringify(expected.ids);
  claims.hold(
    'selection',
    same,
    () => `took ${JSON.stringify(told)}, and the rule takes ${expected.ids.join()}`,
  );
  const full = told.length === request.max || expected.left === 0;
  claims.hold(
    'selection',
    full && told.length <= request.max,
    () => `took ${told.length} of ${request.max}, and ${expected.left} more were claimable`,
  );
}
