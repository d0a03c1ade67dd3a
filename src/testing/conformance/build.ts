/** Builders of requests and of jobs in a given state: what a case does not say is valid, unique and unremarkable. */
import { type Fact, type Job, type JobRequest, type Outcome, STATE } from '../../core/index.ts';
import { factsOf } from '../../evidence/index.ts';
import type {
  By,
  ClaimRequest,
  Delivery,
  Holder,
  JobView,
  Settlement,
  Store,
  Verdict,
} from '../../store/store.ts';
import { accepted, check, only, present, stands } from './check.ts';
import type { OpenedStore } from './harness.ts';

/** The kind every builder uses unless told otherwise, and the definition that can run it. */
export const KIND = 'transfer';
export const WORKER = 'worker-a';
export const LEASE_MS = 1_000;
export const OPERATOR: By = { actor: 'olga', reason: 'on call' };

let serial = 0;

/** A text never given before in this process. */
export function unique(prefix: string): string {
  serial += 1;
  return `${prefix}-${serial}`;
}

/** An idempotent job of the usual kind, due at once. */
export function jobRequest(overrides: Partial<JobRequest> = {}): JobRequest {
  return { kind: KIND, revision: 1, payload: { cents: 7 }, idempotent: true, ...overrides };
}

/** A claim of one job, begun at once, by a worker that knows the usual kind. */
export function claimRequest(overrides: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    worker: WORKER,
    leaseMs: LEASE_MS,
    max: 1,
    requestId: unique('claim'),
    definitions: [{ kind: KIND, revision: 1, idempotent: true }],
    queues: null,
    begin: true,
    ...overrides,
  };
}

/** Admits one job that must be created. */
export async function enqueueOne(store: Store, overrides: Partial<JobRequest> = {}): Promise<Job> {
  const verdict = only(await store.enqueue([jobRequest(overrides)]), 'verdicts');
  check(verdict.status === 'created', `the job must be created, and the verdict was ${verdict.status}`);
  return verdict.job;
}

/** Admits jobs that must all be created, in the order given. */
export async function enqueueMany(store: Store, requests: readonly Partial<JobRequest>[]): Promise<Job[]> {
  const verdicts = await store.enqueue(requests.map((request) => jobRequest(request)));
  return verdicts.map((verdict) => {
    check(verdict.status === 'created', `every job must be created, and one verdict was ${verdict.status}`);
    return verdict.job;
  });
}

/** Claims one job that must be there. */
export async function claimOne(store: Store, overrides: Partial<ClaimRequest> = {}): Promise<Delivery> {
  return only(await store.claim(claimRequest(overrides)), 'deliveries');
}

/** Ids of what a claim gets, in its order. */
export async function claimIds(store: Store, overrides: Partial<ClaimRequest> = {}): Promise<number[]> {
  return (await store.claim(claimRequest(overrides))).map(({ job }) => job.id);
}

/** A claim that takes custody without beginning. */
export async function leaseOne(store: Store, overrides: Partial<ClaimRequest> = {}): Promise<Job> {
  const { job } = await claimOne(store, { begin: false, ...overrides });
  return stands(job, STATE.LEASED);
}

/** Admits one job and begins it. */
export async function runningJob(
  store: Store,
  request: Partial<JobRequest> = {},
  claim: Partial<ClaimRequest> = {},
): Promise<Job> {
  const queue = request.queue ?? 'default';
  const { id } = await enqueueOne(store, request);
  const { job } = await claimOne(store, { queues: [queue], ...claim });
  check(job.id === id, `job ${id} must be the one claimed, and it was ${job.id}`);
  return stands(job, STATE.RUNNING);
}

/** A job that is not idempotent and whose attempt was lost: UNCERTAIN, at exactly the end of its lease. */
export async function uncertainJob(opened: OpenedStore, request: Partial<JobRequest> = {}): Promise<Job> {
  const { store, clock } = opened;
  const job = await runningJob(store, { idempotent: false, ...request });
  clock.set(present(job.lease, 'lease').expiresAt);
  await store.lapse(500);
  return stands(await jobOf(store, job.id), STATE.UNCERTAIN);
}

/** A job that is idempotent, has attempts left and is UNCERTAIN, since the named delay reaches past its deadline. */
export async function retryableUncertainJob(
  opened: OpenedStore,
  request: Partial<JobRequest> = {},
): Promise<Job> {
  const { store, clock } = opened;
  const job = await runningJob(store, { deadline: clock.now() + 60_000, ...request });
  const verdict = await settleOne(store, job, 'uncertain', { delayMs: 60_000 });
  return stands(accepted(verdict, 'the uncertain settlement'), STATE.UNCERTAIN);
}

/** A job that ended in PERMANENT_FAILURE. */
export async function failedJob(store: Store, request: Partial<JobRequest> = {}): Promise<Job> {
  const job = await runningJob(store, request);
  return stands(accepted(await settleOne(store, job, 'permanent'), 'failing'), STATE.PERMANENT_FAILURE);
}

/** A job that used up its one attempt: DEAD_LETTERED. */
export async function deadJob(store: Store, request: Partial<JobRequest> = {}): Promise<Job> {
  const job = await runningJob(store, { maxAttempts: 1, ...request });
  return stands(accepted(await settleOne(store, job, 'retryable'), 'the last attempt'), STATE.DEAD_LETTERED);
}

/** The id and token of a job as last granted. */
export function holderOf(job: Job): Holder {
  return { id: job.id, token: job.token };
}

/** A settlement of a job under its last token. */
export function settlementOf(job: Job, outcome: Outcome, options: Partial<Settlement> = {}): Settlement {
  return { ...holderOf(job), worker: job.lease?.worker ?? WORKER, outcome, ...options };
}

/** Settles one job under its last token. */
export async function settleOne(
  store: Store,
  job: Job,
  outcome: Outcome,
  options: Partial<Settlement> = {},
): Promise<Verdict> {
  return only((await store.settle([settlementOf(job, outcome, options)])).settled, 'verdicts');
}

/** Settles a job succeeded, which must be accepted. */
export async function succeed(store: Store, job: Job, report = '{"ok":true}'): Promise<Job> {
  return accepted(await settleOne(store, job, 'succeeded', { report }), `the success of job ${job.id}`);
}

/** The job as stored. */
export async function jobOf(store: Store, id: number): Promise<Job> {
  return (await viewOf(store, id)).job;
}

/** The job as stored, with what lies beside it. */
export async function viewOf(store: Store, id: number): Promise<JobView> {
  return present(await store.get(id), `job ${id}`);
}

/** All facts recorded of a job, in order. */
export async function factsFor(store: Store, id: number): Promise<readonly Fact[]> {
  return factsOf(present(await store.evidence(id), `evidence of job ${id}`).chain);
}

/** The types of all facts recorded of a job, in order. */
export async function factTypes(store: Store, id: number): Promise<readonly Fact['type'][]> {
  return (await factsFor(store, id)).map((fact) => fact.type);
}

/** Internal jobs of this parent, oldest first. */
export async function internalJobs(store: Store, parentId: number): Promise<Job[]> {
  const { jobs } = await store.find({ internal: true, limit: 1_000 });
  return jobs.map(({ job }) => job).filter((job) => job.submission.internal?.parentId === parentId);
}

/** The balance of the program's account, read as a job of its own. */
export async function balanceOf(opened: OpenedStore): Promise<number> {
  const { store, account } = opened;
  const queue = unique('probe');
  const job = await runningJob(
    store,
    { kind: 'probe', queue },
    { definitions: [{ kind: 'probe', revision: 1, idempotent: true }] },
  );
  const read = await store.transact(holderOf(job), (tx) => account.read(tx.application));
  check(read.ok, 'reading the balance must be possible');
  await succeed(store, job);
  return read.value;
}

/** Adds cents under an effect key, in the way the program would; whether it had been done before. */
export async function addCents(opened: OpenedStore, job: Job, key: string, cents: number): Promise<boolean> {
  const { store, account } = opened;
  const done = await store.transact(holderOf(job), (tx) =>
    tx.commitEffect(key, { cents }, () => {
      account.add(tx.application, cents);
      return { added: cents };
    }),
  );
  check(done.ok, `adding ${cents} must be possible, and was refused: ${done.ok ? '' : done.refused}`);
  return done.value.duplicate;
}
