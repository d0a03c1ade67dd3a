/** Reads: each shows what is stored, whole and no more, and lends nobody a hand inside the store. */
import { limits, STATE } from '../../core/index.ts';
import type { FindQuery, Store } from '../../store/store.ts';
import {
  claimOne,
  deadJob,
  enqueueMany,
  enqueueOne,
  failedJob,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, check, present, rejects, same } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

async function foundIds(store: Store, query: FindQuery): Promise<readonly number[]> {
  return (await store.find(query)).jobs.map(({ job }) => job.id);
}

/** Jobs of many kinds and states, by a name for each. */
async function variety(opened: OpenedStore): Promise<Readonly<Record<string, number>>> {
  const { store } = opened;
  const uncertain = await uncertainJob(opened, { reconciles: true });
  const dead = await deadJob(store, { orderingKey: 'alice' });
  const done = await succeed(store, await runningJob(store, { orderingKey: 'alice', queue: 'slow' }));
  const failed = await failedJob(store);
  const mail = await enqueueOne(store, { kind: 'mail', orderingKey: 'bob' });
  const running = await runningJob(store);
  const ids = { uncertain, dead, done, failed, mail, running };
  return Object.fromEntries(Object.entries(ids).map(([name, job]) => [name, job.id]));
}

export const readCases: readonly ConformanceCase[] = casesOf('get and find', {
  'what nobody stored is null or empty, never an error': async ({ store }) => {
    same(await store.get(4_711), null, 'get');
    same(await store.getByKey('none'), null, 'get by key');
    same(await store.find({}), { jobs: [], nextAfterId: null }, 'find');
    same(await store.evidence(4_711), null, 'evidence');
    same(await store.explain(4_711, []), null, 'explain');
    same(await store.queues(), [], 'queues');
    same(await store.lanes(10), [], 'lanes');
    same(await store.workers(), [], 'workers');
    same(await store.acts(), [], 'acts');
    const { needsYou, stranded, contradictions } = await store.counts();
    same([needsYou, stranded, contradictions], [0, 0, 0], 'counts');
  },

  'a view shows the job with what lies beside it': async ({ store }) => {
    const waiting = await enqueueOne(store, { payload: { b: 1, a: 2 } });
    const view = await viewOf(store, waiting.id);
    same(
      view,
      {
        job: waiting,
        payload: '{"a":2,"b":1}',
        report: null,
        redrivenTo: null,
        dismissed: null,
        testimony: [],
        contradictions: 0,
        needsYou: null,
      },
      'view',
    );
    const { job } = await claimOne(store);
    accepted(await settleOne(store, job, 'retryable', { report: 'bank is down' }), 'the retry');
    same((await viewOf(store, job.id)).report, 'bank is down', 'report while it waits for its retry');
  },

  'each filter finds exactly what it says, and several narrow each other': async (opened) => {
    const { store } = opened;
    const { uncertain, dead, done, failed, mail, running } = await variety(opened);
    const all = [uncertain, dead, done, failed, mail, running];
    same(await foundIds(store, {}), all, 'no filter');
    same(await foundIds(store, { states: [STATE.UNCERTAIN, STATE.RUNNING] }), [uncertain, running], 'states');
    same(await foundIds(store, { states: [] }), [], 'no state at all');
    same(await foundIds(store, { kinds: ['mail', 'none'] }), [mail], 'kinds');
    same(await foundIds(store, { queues: ['slow'] }), [done], 'queues');
    same(await foundIds(store, { orderingKey: 'alice' }), [dead, done], 'ordering key');
    same(await foundIds(store, { orderingKey: 'alice', queues: ['slow'] }), [done], 'ordering key and queue');
    same(await foundIds(store, { needsYou: true }), [uncertain, failed], 'needs you');
    const lineage = (await viewOf(store, present(dead, 'id'))).job.submission.lineage;
    same(await foundIds(store, { lineage }), [dead], 'lineage');
    same((await foundIds(store, { internal: true })).length, all.length + 1, 'internal jobs as well');
  },

  'a lineage finds a job and what was made from it': async ({ store }) => {
    const old = await deadJob(store);
    const verdict = await store.redrive({ id: old.id, by: OPERATOR });
    const made = present(verdict.ok ? verdict.redriven : null, 'the new job');
    same(await foundIds(store, { lineage: old.submission.lineage }), [old.id, made.id], 'ids');
  },

  'pages go by id and end with null; what ended meanwhile is neither lost nor doubled': async ({ store }) => {
    const ids = (
      await enqueueMany(
        store,
        Array.from({ length: 5 }, () => ({})),
      )
    ).map(({ id }) => id);
    const first = await store.find({ limit: 2 });
    same([first.jobs.map(({ job }) => job.id), first.nextAfterId], [ids.slice(0, 2), ids[1]], 'first page');
    accepted(await store.cancel({ id: present(ids[3], 'id'), by: OPERATOR }), 'the cancellation');
    const second = await store.find({ limit: 2, afterId: first.nextAfterId });
    same(
      second.jobs.map(({ job }) => job.id),
      ids.slice(2, 4),
      'second page',
    );
    const third = await store.find({ limit: 2, afterId: second.nextAfterId });
    same([third.jobs.map(({ job }) => job.id), third.nextAfterId], [ids.slice(4), null], 'third page');
    same((await store.find({ limit: 5 })).nextAfterId, null, 'after a page that holds exactly all');
  },

  'a page has its default and its bounds': async ({ store }) => {
    await enqueueMany(
      store,
      Array.from({ length: limits.findPageDefault + 1 }, () => ({})),
    );
    same((await store.find({})).jobs.length, limits.findPageDefault, 'jobs of a page nobody sized');
    for (const limit of [0, -1, 1.5, limits.findPageMax + 1]) {
      await rejects(() => store.find({ limit }), 'invalid_input', `a page of ${limit}`);
      await rejects(() => store.lanes(limit), 'invalid_input', `${limit} lanes`);
    }
    await rejects(() => store.find({ afterId: -1 }), 'invalid_input', 'a page after a negative id');
  },

  'lanes come longest first, each with its head': async ({ store }) => {
    const lane = (orderingKey: string): { orderingKey: string } => ({ orderingKey });
    const requests = [lane('a'), lane('b'), lane('b'), lane('c'), lane('c'), lane('c'), {}];
    const jobs = await enqueueMany(store, requests);
    await claimOne(store);
    const lanes = await store.lanes(2);
    const expected = [
      { queue: 'default', orderingKey: 'c', headId: jobs[3]?.id, headState: STATE.PENDING, unresolved: 3 },
      { queue: 'default', orderingKey: 'b', headId: jobs[1]?.id, headState: STATE.PENDING, unresolved: 2 },
    ];
    same(lanes, expected, 'the two longest lanes');
    same((await store.lanes(3))[2]?.headState, STATE.RUNNING, 'state of the third head');
  },

  'editing what a read answered changes nothing in the store': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store);
    await store.pause('other', OPERATOR);
    const read = async (): Promise<readonly unknown[]> => [
      await store.get(job.id),
      await store.find({}),
      await store.evidence(job.id),
      await store.queues(),
      await store.counts(),
      await store.acts(),
      await store.workers(),
    ];
    const before = structuredClone(await read());
    for (const answer of await read()) scribble(answer);
    same(await read(), before, 'what is read afterwards');
  },
});

/** Overwrites every field there is, however deep. */
function scribble(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (value instanceof Uint8Array) {
    value.fill(0xff);
    return;
  }
  for (const key of Reflect.ownKeys(value)) {
    const field: unknown = Reflect.get(value, key);
    if (typeof field === 'object' && field !== null) scribble(field);
    else if (!(Array.isArray(value) && key === 'length')) Reflect.set(value, key, 'scribbled');
  }
}

const KNOWN = [{ kind: 'transfer', revision: 1, idempotent: true }];

/** The reason and the facts that explain why a job is not running. */
async function why(store: Store, id: number, definitions = KNOWN): Promise<readonly [string, object]> {
  const explanation = present(await store.explain(id, definitions), 'explanation');
  same(explanation.claimable, explanation.reason === 'claimable', 'claimable and its reason agree');
  check(explanation.sentence.length > 10, `a sentence a person can act on: ${explanation.sentence}`);
  return [explanation.reason, explanation.facts];
}

export const explainCases: readonly ConformanceCase[] = casesOf('explain', {
  'a job that nothing holds back is claimable': async ({ store }) => {
    const { id } = await enqueueOne(store);
    same(await why(store, id), ['claimable', { state: STATE.PENDING }], 'why');
  },

  'a job that waits for its start says when it is due': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { delayMs: 100 });
    same(await why(store, id), ['not_due', { state: STATE.SCHEDULED, dueAt: clock.now() + 100 }], 'why');
    clock.advance(100);
    same((await why(store, id))[0], 'claimable', 'why, once it is due');
  },

  'a job behind others says which job holds its lane': async ({ store }) => {
    const [head, , third] = await enqueueMany(
      store,
      Array.from({ length: 3 }, () => ({ orderingKey: 'alice' })),
    );
    const heldById = present(head, 'job').id;
    same(
      await why(store, present(third, 'job').id),
      ['lane_blocked', { state: STATE.PENDING, heldById }],
      'why',
    );
  },

  'a job of a paused queue says who paused it': async ({ store }) => {
    const { id } = await enqueueOne(store);
    await store.pause('default', OPERATOR);
    const facts = { state: STATE.PENDING, pausedBy: OPERATOR.actor };
    same(await why(store, id), ['queue_paused', facts], 'why');
  },

  'a job nobody here can run says which revision it needs': async ({ store }) => {
    const { id } = await enqueueOne(store, { revision: 3 });
    same(
      await why(store, id, []),
      ['kind_unknown', { state: STATE.PENDING, boundRevision: 3 }],
      'unknown kind',
    );
    const facts = { state: STATE.PENDING, boundRevision: 3, knownRevision: 1 };
    same(await why(store, id), ['revision_unknown', facts], 'unknown revision');
    const newer = [{ kind: 'transfer', revision: 3, idempotent: true }];
    same((await why(store, id, newer))[0], 'claimable', 'why, for a newer worker');
  },

  'a job that runs says who holds it and until when': async ({ store, clock }) => {
    const { id } = await runningJob(store);
    const facts = { state: STATE.RUNNING, worker: 'worker-a', leaseUntil: clock.now() + 1_000 };
    same(await why(store, id), ['wrong_state', facts], 'why');
  },

  'a job that ended, or that nobody can vouch for, says so': async (opened) => {
    const { store } = opened;
    const failed = await failedJob(store);
    same(
      await why(store, failed.id),
      ['terminal', { state: STATE.PERMANENT_FAILURE }],
      'why it does not run',
    );
    const uncertain = await uncertainJob(opened);
    same(await why(store, uncertain.id), ['wrong_state', { state: STATE.UNCERTAIN }], 'why it waits');
  },

  'of several reasons the first one in the order of refusals is given': async ({ store }) => {
    const requests = [{ orderingKey: 'alice' }, { orderingKey: 'alice', delayMs: 100, kind: 'mail' }];
    const [head, second] = await enqueueMany(store, requests);
    const { id } = present(second, 'job');
    await store.pause('default', OPERATOR);
    same((await why(store, id))[0], 'not_due', 'the first reason');
    accepted(await store.promote({ id, by: OPERATOR }), 'promoting');
    same((await why(store, id))[0], 'lane_blocked', 'the second reason');
    accepted(await store.cancel({ id: present(head, 'job').id, by: OPERATOR }), 'the cancellation');
    same((await why(store, id))[0], 'queue_paused', 'the third reason');
    await store.resume('default', OPERATOR);
    same((await why(store, id))[0], 'kind_unknown', 'the fourth reason');
  },

  'time that passed is looked at without being written': async ({ store, clock }) => {
    const lost = await runningJob(store, { orderingKey: 'alice' });
    const next = await enqueueOne(store, { orderingKey: 'alice' });
    clock.advance(1_000);
    same((await why(store, lost.id))[0], 'claimable', 'why, once the lease is over');
    same((await why(store, next.id))[0], 'lane_blocked', 'why, of the job behind it');
    same((await viewOf(store, lost.id)).job, lost, 'the stored job');
  },
});
