/** Admission: what a key, a deadline and a bound must lead to, told before the store is believed. */
import { type JobRequest, limits, stateIsTerminal } from '../../src/core/index.ts';
import type { EnqueueVerdict } from '../../src/store/store.ts';
import { lapsedAt } from './audit-frame.ts';
import type { Claims } from './claims.ts';
import { contentOf, type Memory, type Taken } from './memory-of-history.ts';
import type { Step } from './step.ts';

/** What a request must be answered with; `by` is the claim that would be broken otherwise. */
interface Expected {
  readonly status: EnqueueVerdict['status'];
  readonly refused: string | null;
  /** The job that must be named, null where any new one may be. */
  readonly id: number | null;
  readonly by: 'keys' | 'admission' | 'capacity';
  /** Whether it makes a new job. */
  readonly fresh: boolean;
}

/** The job of a withheld member has no id, since it was never stored. */
const UNBORN = 0;

export function auditAdmission(step: Step, memory: Memory, claims: Claims): void {
  const { call } = step;
  for (const { job } of step.after.values()) if (job.endedAt !== null) memory.ended.set(job.id, job.endedAt);
  auditIds(step, memory, claims);
  if (call.verb === 'enqueue') {
    const refused = call.verdicts.some(({ status }) => status === 'refused');
    auditBatch(step, call.requests, call.verdicts, call.atomic && refused, memory, claims);
  }
  if (call.verb === 'transact') {
    const committed = call.answer !== 'threw' && call.answer.ok;
    auditBatch(step, call.requests, call.verdicts, !committed, memory, claims);
  }
  auditBounds(step, memory, claims);
}

/** New ids lie above all that were ever given out. */
function auditIds(step: Step, memory: Memory, claims: Claims): void {
  for (const id of step.after.keys()) {
    if (step.before.has(id)) continue;
    const above = id > memory.lastId && id >= memory.idFloor;
    claims.hold(
      'tokensRise',
      above,
      () => `id ${id} was given after ${memory.lastId}, floor ${memory.idFloor}`,
    );
    memory.lastId = Math.max(id, memory.lastId);
  }
}

function auditBatch(
  step: Step,
  requests: readonly JobRequest[],
  verdicts: readonly EnqueueVerdict[],
  rolledBack: boolean,
  memory: Memory,
  claims: Claims,
): void {
  const keys = new Map(memory.keys);
  const ids = new Map(memory.requests);
  const load = new Map<string, number>();
  const fresh = new Set<Taken>();
  verdicts.forEach((verdict, index) => {
    const request = requests[index];
    if (request === undefined) return;
    const queue = request.queue ?? 'default';
    const expected = expectedOf(step, request, { keys, ids, load, fresh, memory });
    const withheld = rolledBack && expected.status === 'created' && verdict.status === 'withheld';
    const refused = verdict.status === 'refused' ? verdict.refused : null;
    const asJson = JSON.stringify(request);
    const right = verdict.status === expected.status && refused === expected.refused;
    const { by } = refused === 'capacity_exceeded' ? { by: 'capacity' as const } : expected;
    claims.hold(
      by,
      right || withheld,
      () => `${asJson} was answered ${JSON.stringify(verdict)}, not ${JSON.stringify(expected)}`,
    );
    const id = verdict.status === 'withheld' ? UNBORN : verdict.id;
    const named = expected.id === null || id === UNBORN || id === expected.id;
    claims.hold('keys', named, () => `${asJson} was answered with job ${id}, not ${expected.id}`);
    if (!expected.fresh) return;
    load.set(queue, (load.get(queue) ?? 0) + 1);
    const key = request.idempotencyKey ?? null;
    const taken: Taken = { id: id ?? UNBORN, content: contentOf(request), key };
    fresh.add(taken);
    if (request.idempotencyKey != null) keys.set(request.idempotencyKey, taken);
    if (request.requestId != null) ids.set(request.requestId, taken);
    if (verdict.status !== 'created') return;
    claims.hold(
      'rollback',
      step.after.has(verdict.id) !== rolledBack,
      () => `job ${verdict.id} is ${rolledBack ? 'there' : 'not there'}`,
    );
  });
  if (rolledBack) return;
  for (const [key, taken] of keys) memory.keys.set(key, taken);
  for (const [id, taken] of ids) memory.requests.set(id, taken);
}

interface Known {
  readonly keys: ReadonlyMap<string, Taken>;
  readonly ids: ReadonlyMap<string, Taken>;
  /** Jobs admitted by earlier members of the batch. */
  readonly load: ReadonlyMap<string, number>;
  readonly fresh: ReadonlySet<Taken>;
  readonly memory: Memory;
}

function expectedOf(step: Step, request: JobRequest, known: Known): Expected {
  const content = contentOf(request);
  const conflict = (id: number): Expected => ({
    status: 'refused',
    refused: 'conflict',
    id: id === UNBORN ? null : id,
    by: 'keys',
    fresh: false,
  });
  const asked = request.requestId == null ? undefined : known.ids.get(request.requestId);
  if (asked !== undefined && isStored(step, asked, known)) {
    // Another key makes it another request, whatever its content.
    const same = asked.content === content && asked.key === (request.idempotencyKey ?? null);
    if (!same) return conflict(asked.id);
    return { status: 'created', refused: null, id: asked.id || null, by: 'keys', fresh: false };
  }
  const taken = request.idempotencyKey == null ? undefined : known.keys.get(request.idempotencyKey);
  if (taken !== undefined && isKept(step, taken, known)) {
    if (taken.content !== content) return conflict(taken.id);
    return { status: 'duplicate', refused: null, id: taken.id || null, by: 'keys', fresh: false };
  }
  const startAt = step.now + (request.delayMs ?? 0);
  const deadline = request.deadline ?? null;
  if (deadline !== null && (deadline <= step.now || startAt >= deadline)) {
    return { status: 'refused', refused: 'deadline_passed', id: null, by: 'admission', fresh: false };
  }
  const queue = request.queue ?? 'default';
  const bound = known.memory.bounds.get(queue) ?? null;
  const unresolved = unresolvedIn(step, queue) + (known.load.get(queue) ?? 0);
  if (bound !== null && unresolved >= bound) {
    return { status: 'refused', refused: 'capacity_exceeded', id: null, by: 'capacity', fresh: false };
  }
  return {
    status: 'created',
    refused: null,
    id: null,
    by: bound === null ? 'admission' : 'capacity',
    fresh: true,
  };
}

/** Stored before, or admitted by an earlier member of this very batch. */
function isStored(step: Step, taken: Taken, known: Known): boolean {
  return step.before.has(taken.id) || step.after.has(taken.id) || known.fresh.has(taken);
}

/** A key outlives its job until its own time is over. */
function isKept(step: Step, taken: Taken, known: Known): boolean {
  if (isStored(step, taken, known)) return true;
  const ended = known.memory.ended.get(taken.id);
  return ended === undefined || step.now < ended + limits.keepKeysForMsDefault;
}

function unresolvedIn(step: Step, queue: string): number {
  return [...step.before.values()].filter(({ job }) => {
    const counts = job.submission.queue === queue && job.submission.internal === null;
    return counts && !stateIsTerminal(lapsedAt(step, job).state);
  }).length;
}

/** Whatever admitted a job, a redrive too, did so below the bound. */
function auditBounds(step: Step, memory: Memory, claims: Claims): void {
  for (const [queue, bound] of memory.bounds) {
    if (bound === null) continue;
    const all = [...step.after.values()]
      .map(({ job }) => job)
      .filter(({ submission }) => {
        return submission.queue === queue && submission.internal === null;
      });
    const admitted = all.filter(({ id }) => !step.before.has(id));
    if (admitted.length === 0) continue;
    const unresolved = all.filter(({ state }) => !stateIsTerminal(state)).length;
    claims.hold(
      'capacity',
      unresolved <= bound,
      () => `${unresolved} unresolved jobs in ${queue}, bound ${bound}`,
    );
  }
}
