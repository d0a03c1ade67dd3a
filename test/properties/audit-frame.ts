/** Who may have changed: a step moves the jobs it was accepted for, what time ended, and nothing else. */
import { isDeepStrictEqual } from 'node:util';
import { cutLease, type Fact, type Job, lapse, STATE, stateIsTerminal } from '../../src/core/index.ts';
import type { JobView } from '../../src/store/store.ts';
import type { Claims } from './claims.ts';
import type { Call, Step } from './step.ts';

/** What a step asked of one job. */
interface Asked {
  readonly accepted: boolean;
  readonly refusals: readonly string[];
  readonly tokens: readonly number[];
}

/** The job as time alone leaves it. */
export function lapsedAt(step: Step, job: Job): Job {
  const followed = step.call.verb === 'clock' && step.call.seen < step.call.floor;
  if (stateIsTerminal(job.state)) return job;
  return lapse(followed ? cutLease(job, step.now) : job, step.now).job;
}

export function auditFrame(step: Step, claims: Claims): void {
  const asked = askedOf(step.call);
  for (const [id, before] of step.before) {
    const after = step.after.get(id);
    if (after === undefined) continue;
    if (stateIsTerminal(before.job.state)) {
      if (after !== before) auditSettled(before, after, claims);
    } else auditUnresolved(step, before, after, asked.get(id) ?? null, claims);
  }
}

function auditSettled(before: JobView, after: JobView, claims: Claims): void {
  const { redrivenTo, dismissed } = before;
  const kept =
    isDeepStrictEqual(after.job, before.job) &&
    after.payload === before.payload &&
    after.report === before.report &&
    (redrivenTo === null || redrivenTo === after.redrivenTo) &&
    (dismissed === null || isDeepStrictEqual(dismissed, after.dismissed)) &&
    isDeepStrictEqual(after.testimony.slice(0, before.testimony.length), before.testimony);
  claims.hold('terminalIsFinal', kept, () => difference(before, after));
}

function auditUnresolved(
  step: Step,
  before: JobView,
  after: JobView,
  asked: Asked | null,
  claims: Claims,
): void {
  const lapsed = lapsedAt(step, before.job);
  const moved = after !== before && !isDeepStrictEqual(after.job, before.job);
  if (asked === null) {
    const followed = step.call.verb === 'clock' && step.call.seen < step.call.floor;
    const byTime = (): boolean => isDeepStrictEqual(after.job, lapsed) || isCalledOff(step, before.job);
    claims.hold('othersAreLeftAlone', !moved || byTime(), () => difference(lapsed, after.job));
    if (followed) {
      claims.hold('clock', byTime(), () => difference(lapsed, after.job));
      const { lease } = after.job;
      const bounded = lease === null || lease.expiresAt <= step.now + lease.lengthMs;
      claims.hold(
        'clock',
        bounded,
        () => `job ${after.job.id} is held until ${lease?.expiresAt}, a phantom future`,
      );
    }
    return;
  }
  if (asked.accepted) return;
  const stale = asked.refusals.every((refusal) => refusal === 'stale_token');
  const kept = isDeepStrictEqual(after.job, lapsed) || isTestimony(step, lapsed, after.job, asked);
  claims.hold(stale ? 'staleChangesNothing' : 'refusalChangesNothing', kept, () => {
    return `${asked.refusals.join()}: ${difference(lapsed, after.job)}`;
  });
}

/** An internal job that nobody asked for any more is cancelled in the commit that decides its parent. */
function isCalledOff(step: Step, job: Job): boolean {
  const last = step.recorded.get(job.id)?.at(-1);
  return (
    job.submission.internal?.purpose === 'reconcile' && last?.type === 'cancel' && last.actor === 'custody'
  );
}

/** A late report about the last, UNCERTAIN attempt is an entry, and may count as its decision. */
function isTestimony(step: Step, lapsed: Job, after: Job, asked: Asked): boolean {
  const settling = step.call.verb === 'settle' || step.call.verb === 'transact';
  if (!settling || lapsed.state !== STATE.UNCERTAIN || !asked.tokens.includes(lapsed.token)) return false;
  const types = (step.recorded.get(after.id) ?? []).map((fact) => fact.type);
  const late = types.filter((type) => type !== 'lapsed');
  const onlyLate = late.every((type) => type === 'testimony' || type === 'reconciled');
  return onlyLate && late[0] === 'testimony' && isByLateReport(step.recorded.get(after.id) ?? []);
}

function isByLateReport(facts: readonly Fact[]): boolean {
  return facts.every((fact) => fact.type !== 'reconciled' || fact.by === 'late_report');
}

/** What a call asked of each job, and whether any of it was accepted. */
function askedOf(call: Call): ReadonlyMap<number, Asked> {
  const asked = new Map<number, Asked>();
  const note = (id: number, refusal: string | null, token = 0): void => {
    const known = asked.get(id) ?? { accepted: false, refusals: [], tokens: [] };
    const accepted = known.accepted || refusal === null;
    const refusals = refusal === null ? known.refusals : [...known.refusals, refusal];
    asked.set(id, { accepted, refusals, tokens: [...known.tokens, token] });
  };
  if (call.verb === 'settle') {
    call.settlements.forEach(({ id, token }, index) => {
      const verdict = call.verdicts[index];
      const known = verdict?.ok === true && verdict.duplicate ? 'duplicate' : null;
      note(id, verdict?.ok === false ? verdict.refused : known, token);
    });
  }
  if (call.verb === 'claim' || call.verb === 'settle') for (const { job } of call.claimed) note(job.id, null);
  if (call.verb === 'begin') {
    call.holders.forEach(({ id, token }, index) => {
      const verdict = call.verdicts[index];
      note(id, verdict?.ok === false ? verdict.refused : null, token);
    });
  }
  if (call.verb === 'extend') {
    call.extensions.forEach(({ id, token }, index) => {
      const verdict = call.verdicts[index];
      note(id, verdict?.status === 'lost' ? verdict.refused : null, token);
    });
  }
  if (call.verb === 'transact') {
    const { answer, holder } = call;
    const refusal = answer === 'threw' ? 'threw' : answer.ok ? null : answer.refused;
    note(holder.id, refusal, 0);
  }
  if (call.verb === 'cancel' || call.verb === 'promote' || call.verb === 'dismiss') {
    const { verdict } = call;
    const known = verdict.ok && verdict.duplicate ? 'duplicate' : null;
    note(call.request.id, verdict.ok ? known : verdict.refused);
  }
  if (call.verb === 'reconcile') {
    const refusal = call.verdict.ok ? null : call.verdict.refused;
    note(call.request.id, refusal);
    // It is settled only together with the decision, and left alone by a decision that is refused.
    if (refusal === null && call.request.internal != null) note(call.request.internal.id, null);
  }
  if (call.verb === 'redrive' && call.request.dryRun !== true) {
    // Redriving links a settled job; what was not settled yet has only lapsed.
    note(call.request.id, call.verdict.ok ? 'redriven' : call.verdict.refused);
  }
  return asked;
}

/** The first fields that differ. */
export function difference(expected: object, seen: object): string {
  const found = new Map<string, unknown>(Object.entries(seen));
  const differing = Object.entries(expected).filter(
    ([field, value]) => !isDeepStrictEqual(value, found.get(field)),
  );
  const fields = differing.map(
    ([field, value]) => `${field} is ${JSON.stringify(found.get(field))}, not ${JSON.stringify(value)}`,
  );
  const { id } = 'job' in expected ? (expected.job as Job) : (expected as Job);
  return `job ${id}: ${fields.join('; ') || 'no difference'}`;
}
