/** What workers do: claim, work under a token, report, vanish, and come back with what they once held. */
import { type Job, type JobRequest, STATE } from '../../src/core/index.ts';
import type { ClaimRequest, EnqueueVerdict, Settlement, StoreTransaction } from '../../src/store/store.ts';
import type { Action, ClaimSpec, Op, Report } from './actions.ts';
import type { Call, Marked, TransactCall } from './step.ts';
import { at, type Held, KINDS, QUEUES, requestOf, type Worker, type World } from './world.ts';

type Of<Name extends Action['do']> = Extract<Action, { readonly do: Name }>;

/** What a worker of this sort can run. */
export function definitionsOf(knows: ClaimSpec['knows']): ClaimRequest['definitions'] {
  const revision = knows === 'old' ? 1 : 2;
  const kinds = knows === 'one' ? KINDS.slice(0, 1) : KINDS;
  return kinds.map((kind) => ({ kind, revision, idempotent: knows !== 'unsafe' || kind !== KINDS[0] }));
}

function claimRequestOf(world: World, spec: ClaimSpec): ClaimRequest {
  const worker = world.worker(spec.worker);
  const repeat = spec.repeat && worker.claimId !== null;
  worker.claimId = repeat ? worker.claimId : `claim-${world.serial()}`;
  return {
    worker: worker.name,
    leaseMs: spec.leaseMs,
    max: spec.max,
    requestId: worker.claimId ?? '',
    definitions: definitionsOf(spec.knows),
    queues: spec.queue === null ? null : [QUEUES[spec.queue] ?? QUEUES[0]],
    begin: spec.begin,
  };
}

/** A delivery that some worker thinks it holds: mostly one it does hold, of the worker meant if that one has any. */
export function pickHeld(
  world: World,
  index: number,
  pick: number,
  wanted: (job: Job) => boolean = () => true,
): { readonly worker: Worker; readonly held: Held } | null {
  const workers = [world.worker(index), ...world.workers];
  const isLive = ({ id, token }: Held): boolean => {
    const job = world.views.get(id)?.job;
    return job?.lease?.token === token && wanted(job);
  };
  const fits = pick % 8 === 0 ? (): boolean => true : isLive;
  for (const worker of workers) {
    const held = at(worker.held.filter(fits), pick);
    if (held !== undefined) return { worker, held };
  }
  return null;
}

function took(worker: Worker, claimed: readonly { readonly job: Held }[]): void {
  const fresh = claimed.map(({ job: { id, token } }) => ({ id, token }));
  const known = worker.held.filter((one) => !fresh.some(({ token }) => token === one.token));
  worker.held = [...known, ...fresh].slice(-6);
}

export async function claim(world: World, action: Of<'claim'>): Promise<Call> {
  const request = claimRequestOf(world, action);
  const claimed = await world.store.claim(request);
  took(world.worker(action.worker), claimed);
  return { verb: 'claim', claim: request, claimed };
}

export async function begin(world: World, holders: readonly Held[]): Promise<Call> {
  return { verb: 'begin', holders, verdicts: await world.store.begin(holders) };
}

export async function extend(world: World, held: Held, extendMs: number): Promise<Call> {
  const extensions = [{ ...held, extendMs }];
  return { verb: 'extend', extensions, verdicts: await world.store.extend(extensions) };
}

function settlementOf(world: World, worker: Worker, held: Held, report: Report): Settlement {
  const { outcome, text, delayMs, jitterMs, neverCalled, byUpgrade } = report;
  return {
    ...held,
    worker: worker.name,
    outcome,
    report: outcome === 'succeeded' ? `{"said":${text}}` : `said ${text}`,
    delayMs,
    jitterMs,
    until: outcome === 'snoozed' ? Math.max(0, world.now() + report.untilIn) : null,
    neverCalled,
    byUpgrade,
  };
}

export async function settle(world: World, action: Of<'settle'>): Promise<Call | null> {
  const picked = pickHeld(world, action.worker, action.pick);
  if (picked === null) return null;
  const { worker, held } = picked;
  const settlement = settlementOf(world, worker, held, action.report);
  const settlements = action.twice ? [settlement, settlement] : [settlement];
  const wish =
    action.claim === null
      ? null
      : claimRequestOf(world, { ...action.claim, worker: world.workers.indexOf(worker) });
  const { settled, claimed } = await world.store.settle(settlements, wish);
  worker.said = [settlement];
  worker.drop(held);
  took(worker, claimed);
  return { verb: 'settle', settlements, verdicts: settled, claim: wish, claimed, repeated: false };
}

/** Says what was said last once more, or something else under the same token. */
export async function repeat(world: World, action: Of<'repeat'>): Promise<Call | null> {
  const worker = world.worker(action.worker);
  if (worker.said.length === 0) return null;
  const { outcome } = action;
  const settlements =
    outcome === null ? worker.said : worker.said.map((one) => ({ ...one, outcome, report: '"other"' }));
  const { settled } = await world.store.settle(settlements);
  return {
    verb: 'settle',
    settlements,
    verdicts: settled,
    claim: null,
    claimed: [],
    repeated: outcome === null,
  };
}

/** Acts with a token that was held once, or that nobody was ever given. */
export async function zombie(world: World, action: Of<'zombie'>): Promise<Call | null> {
  const worker = world.worker(action.worker);
  const ghosts = [...worker.ghosts, ...worker.held];
  // Mostly one whose attempt is the last one and has not been decided.
  const inDoubt = ghosts.filter(({ id, token }) => {
    const job = world.views.get(id)?.job;
    return job?.state === STATE.UNCERTAIN && job.token === token;
  });
  const ghost = at(inDoubt.length > 0 && action.pick % 4 > 0 ? inDoubt : ghosts, action.pick);
  if (ghost === undefined) return null;
  const held = { ...ghost, token: Math.max(1, ghost.token + action.forged) };
  switch (action.verb) {
    case 'begin':
      return begin(world, [held]);
    case 'extend':
      return extend(world, held, 50);
    case 'transact':
      return transactAs(world, held, [{ op: 'commit', key: 0, content: 0, safe: true }]);
    case 'settle': {
      const settlements = [settlementOf(world, worker, held, action.report)];
      const { settled } = await world.store.settle(settlements);
      return { verb: 'settle', settlements, verdicts: settled, claim: null, claimed: [], repeated: false };
    }
  }
}

export async function transact(world: World, action: Of<'transact'>): Promise<Call | null> {
  const picked = pickHeld(world, action.worker, action.pick);
  return picked === null ? null : transactAs(world, picked.held, action.ops);
}

/** Thrown by the program itself in the middle of its transaction. */
class OwnError extends Error {}

/** What happened inside the transaction, as far as it came. */
interface Inside {
  now: number | null;
  balance: number | null;
  readonly marked: Marked[];
  readonly requests: JobRequest[];
  readonly verdicts: EnqueueVerdict[];
  settled: boolean;
}

async function transactAs(world: World, held: Held, ops: readonly Op[]): Promise<Call> {
  const inside: Inside = { now: null, balance: null, marked: [], requests: [], verdicts: [], settled: false };
  const holder = { id: held.id, token: held.token };
  const answered = async (): Promise<TransactCall['answer']> => {
    try {
      return await world.store.transact(holder, (tx) => {
        inside.now = tx.now;
        inside.balance = world.opened.account.read(tx.application);
        for (const op of ops) if (!inside.settled) run(world, tx, op, inside);
        return null;
      });
    } catch (error) {
      if (error instanceof OwnError) return 'threw';
      throw error;
    }
  };
  const answer = await answered();
  return { verb: 'transact', holder, answer, entered: inside.now !== null, ...inside };
}

function run(world: World, tx: StoreTransaction, op: Op, inside: Inside): void {
  switch (op.op) {
    case 'commit': {
      const key = `effect-${op.key}`;
      let ran = false;
      const { duplicate, result } = tx.commitEffect(key, { content: op.content }, () => {
        ran = true;
        world.opened.account.add(tx.application, 1);
        return { number: world.serial() };
      });
      inside.marked.push({ type: 'commit', key, content: op.content, ran, known: duplicate, result });
      return;
    }
    case 'begin_step': {
      const key = `step-${op.key}`;
      const begun = tx.beginStep(key, { descriptor: { content: op.content }, idempotent: op.safe });
      const known = begun.status === 'done';
      const result = begun.status === 'done' ? begun.result : null;
      inside.marked.push({ type: 'step', key, content: op.content, ran: false, known, result });
      return;
    }
    case 'finish_step':
      tx.finishStep(`step-${op.key}`, { content: op.content });
      return;
    case 'enqueue': {
      const requests = [requestOf(op.spec, tx.now)];
      inside.requests.push(...requests);
      inside.verdicts.push(...tx.enqueue(requests));
      return;
    }
    case 'settle':
      tx.settle({ outcome: op.outcome, until: op.outcome === 'snoozed' ? tx.now + 10 : null });
      inside.settled = true;
      return;
    case 'throw':
      throw new OwnError('the program changed its mind');
  }
}
