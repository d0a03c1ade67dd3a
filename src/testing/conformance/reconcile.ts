/** Reconcile: nothing leaves UNCERTAIN but by a decision about that very attempt, and a wrong one changes nothing. */
import { type Decided, type Job, type JobRequest, STATE } from '../../core/index.ts';
import type { ReconcileRequest, ReconcileVerdict, Store } from '../../store/store.ts';
import {
  claimIds,
  claimOne,
  enqueueOne,
  factsFor,
  failedJob,
  holderOf,
  jobOf,
  jobRequest,
  OPERATOR,
  retryableUncertainJob,
  runningJob,
  settleOne,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, check, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

async function decideJob(
  store: Store,
  job: Job,
  decision: Decided,
  options: Partial<ReconcileRequest> = {},
): Promise<ReconcileVerdict> {
  return store.reconcile({ ...holderOf(job), decision, by: OPERATOR, ...options });
}

/** An idempotent job that began a step which must not run twice, and then could not tell what had become of it. */
async function openStepJob({ store }: OpenedStore, request: Partial<JobRequest> = {}): Promise<Job> {
  const job = await runningJob(store, request);
  const begun = await store.transact(holderOf(job), (tx) =>
    tx.beginStep('wire', { descriptor: null, idempotent: false }),
  );
  check(begun.ok, 'the step must begin');
  return stands(accepted(await settleOne(store, job, 'uncertain'), 'the settlement'), STATE.UNCERTAIN);
}

async function beginWire(store: Store): Promise<unknown> {
  const { job } = await claimOne(store);
  const answer = await store.transact(holderOf(job), (tx) =>
    tx.beginStep('wire', { descriptor: null, idempotent: false }),
  );
  return answer.ok ? answer.value : answer.refused;
}

export const reconcileCases: readonly ConformanceCase[] = casesOf('reconcile', {
  'succeeded ends the job as SUCCEEDED': async (opened) => {
    const job = await uncertainJob(opened);
    const verdict = await decideJob(opened.store, job, 'succeeded');
    const decided = stands(accepted(verdict, 'the decision'), STATE.SUCCEEDED);
    same([decided.cause, decided.endedAt], ['reconciled', opened.clock.now()], 'cause and end');
    check(verdict.ok && verdict.redriven === null && verdict.redriveRefused === null, 'nothing was redriven');
    same(decided, await jobOf(opened.store, job.id), 'the answer and what is stored');
  },

  'failed ends the job as PERMANENT_FAILURE': async (opened) => {
    const job = await uncertainJob(opened);
    const decided = accepted(await decideJob(opened.store, job, 'failed'), 'the decision');
    same(stands(decided, STATE.PERMANENT_FAILURE).cause, 'reconciled', 'cause');
  },

  'a permitted retry waits at once and runs under a new token': async (opened) => {
    const { store } = opened;
    const job = await retryableUncertainJob(opened);
    stands(accepted(await decideJob(store, job, 'retry'), 'the decision'), STATE.PENDING);
    const again = (await claimOne(store)).job;
    same([again.id, again.attempt], [job.id, 2], 'id and attempt');
    check(again.token > job.token, 'the new token is above the old one');
  },

  'a job that is not idempotent is not run again, whoever asks; it stays UNCERTAIN': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    for (const role of ['person', 'reconciler'] as const) {
      const verdict = await decideJob(store, job, 'retry', { by: { ...OPERATOR, role } });
      refused(verdict, 'retry_not_permitted', `a retry by ${role}`);
    }
    same(await jobOf(store, job.id), job, 'the uncertain job');
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
  },

  'a job without attempts left is not run again': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store, { maxAttempts: 1 });
    accepted(await settleOne(store, job, 'uncertain'), 'the settlement');
    refused(await decideJob(store, job, 'retry'), 'retry_not_permitted', 'a retry');
    accepted(await decideJob(store, job, 'failed'), 'failing');
  },

  'no retry is decided at the deadline': async (opened) => {
    const { store, clock } = opened;
    const job = await retryableUncertainJob(opened);
    clock.set(present(job.submission.deadline, 'deadline') - 1);
    const other = await openStepJob(opened, { deadline: clock.now() + 1 });
    clock.advance(1);
    refused(await decideJob(store, job, 'retry'), 'deadline_passed', 'a retry');
    refused(await decideJob(store, other, 'retry'), 'deadline_passed', 'a retry with an open step');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
    accepted(await decideJob(store, job, 'succeeded'), 'succeeding after the deadline');
  },

  'what is not UNCERTAIN is not decided': async ({ store }) => {
    const running = await runningJob(store);
    refused(await decideJob(store, running, 'succeeded'), 'wrong_state', 'deciding a running job');
    same(await jobOf(store, running.id), running, 'the running job');
    const failed = await failedJob(store);
    refused(await decideJob(store, failed, 'succeeded'), 'terminal', 'deciding a failed job');
    const unknown = { ...running, id: 4_711 };
    refused(await decideJob(store, unknown, 'succeeded'), 'unknown_job', 'deciding an unknown job');
  },

  'a decision is about one attempt: about an older one it is refused': async (opened) => {
    const { store } = opened;
    const first = await retryableUncertainJob(opened);
    accepted(await decideJob(store, first, 'retry'), 'the first decision');
    const again = (await claimOne(store)).job;
    const second = accepted(
      await settleOne(store, again, 'uncertain', { delayMs: 60_000 }),
      'the settlement',
    );
    stands(second, STATE.UNCERTAIN);
    refused(await decideJob(store, first, 'failed'), 'stale_token', 'a decision about the first attempt');
    same(await jobOf(store, second.id), second, 'the uncertain job');
    accepted(await decideJob(store, second, 'failed'), 'the decision about the second attempt');
  },

  'who decides on what they saw is refused when testimony came since': async (opened) => {
    const { store } = opened;
    const seen = await uncertainJob(opened, { acceptLateReports: false });
    await settleOne(store, seen, 'succeeded');
    const stale = await decideJob(store, seen, 'failed', { version: seen.version });
    refused(stale, 'version_mismatch', 'deciding on an old version');
    const { version } = await jobOf(store, seen.id);
    accepted(await decideJob(store, seen, 'succeeded', { version }), 'deciding on what is there');
  },

  'one decision is final: the second is told so': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    const verdicts = await Promise.all([decideJob(store, job, 'succeeded'), decideJob(store, job, 'failed')]);
    same(verdicts.filter(({ ok }) => ok).length, 1, 'decisions accepted');
    const loser = present(
      verdicts.find(({ ok }) => !ok),
      'loser',
    );
    refused(loser, 'terminal', 'the second decision');
  },

  'a job that requires an effect is not decided succeeded without it': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened, { requiresEffect: 'charge' });
    refused(await decideJob(store, job, 'succeeded'), 'effect_not_committed', 'deciding succeeded');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
    accepted(await decideJob(store, job, 'failed'), 'deciding failed');
  },

  'a late success without the required effect stays testimony': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened, { requiresEffect: 'charge' });
    refused(await settleOne(store, job, 'succeeded'), 'lease_lost', 'the late report');
    const view = await viewOf(store, job.id);
    same([stands(view.job, STATE.UNCERTAIN).testimonies, view.testimony.length], [1, 1], 'testimonies');
  },

  'a retry must say of each open step whether it took place': async (opened) => {
    const { store } = opened;
    const job = await openStepJob(opened);
    refused(await decideJob(store, job, 'retry'), 'step_open', 'a retry that says nothing');
    const wrong = [{ key: 'other', tookPlace: false }];
    refused(
      await decideJob(store, job, 'retry', { steps: wrong }),
      'effect_conflict',
      'a step that is not open',
    );
    const twice = [
      { key: 'wire', tookPlace: false },
      { key: 'wire', tookPlace: true },
    ];
    refused(await decideJob(store, job, 'retry', { steps: twice }), 'effect_conflict', 'a step named twice');
    same(await jobOf(store, job.id), job, 'the uncertain job');
  },

  'a step that did not take place begins again': async (opened) => {
    const { store } = opened;
    const job = await openStepJob(opened);
    const steps = [{ key: 'wire', tookPlace: false }];
    const decided = accepted(await decideJob(store, job, 'retry', { steps }), 'the decision');
    same([stands(decided, STATE.PENDING).openSteps], [[]], 'open steps');
    same(await beginWire(store), { status: 'begun' }, 'the step in the next attempt');
  },

  'a step that took place is done, with the result that was stated': async (opened) => {
    const { store } = opened;
    const job = await openStepJob(opened);
    const steps = [{ key: 'wire', tookPlace: true, result: { wire: 'w-1' } }];
    accepted(await decideJob(store, job, 'retry', { steps }), 'the decision');
    same(await beginWire(store), { status: 'done', result: { wire: 'w-1' } }, 'the step in the next attempt');
  },

  'who decided, in which role, why, and about what, is part of the history': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    const by = { actor: 'olga', reason: 'statement of the bank', role: 'person' } as const;
    accepted(await decideJob(store, job, 'succeeded', { by }), 'the decision');
    const fact = present((await factsFor(store, job.id)).at(-1), 'fact');
    check(
      fact.type === 'reconciled' && fact.reason !== null,
      'the last fact is the decision, with its reason',
    );
    same(
      [fact.actor, fact.by, fact.decision, fact.token],
      ['olga', 'person', 'succeeded', job.token],
      'fact',
    );
    same(present(await store.evidence(job.id), 'evidence').texts[fact.reason], by.reason, 'reason');
  },

  'failed can make a new job in the same commit': async (opened) => {
    const { store, clock } = opened;
    const job = await uncertainJob(opened, { orderingKey: 'alice' });
    const deadline = clock.now() + 5_000;
    const verdict = await decideJob(store, job, 'failed', { redrive: { deadline } });
    stands(accepted(verdict, 'the decision'), STATE.PERMANENT_FAILURE);
    const redriven = present(verdict.ok ? verdict.redriven : null, 'the new job');
    same(
      [redriven.submission.deadline, redriven.submission.inherited?.fromId],
      [deadline, job.id],
      'new job',
    );
    same((await viewOf(store, job.id)).redrivenTo, redriven.id, 'link');
    const act = present((await store.acts()).at(-1), 'act');
    same([act.act, act.actor, act.reason], ['redrive', OPERATOR.actor, OPERATOR.reason], 'act');
    same(await claimIds(store, { max: 500 }), [redriven.id], 'ids claimed');
  },

  'a decision stands although the new job it asked for is refused': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    await enqueueOne(store);
    await store.configure('default', { maxUnresolved: 1 }, OPERATOR);
    const verdict = await decideJob(store, job, 'failed', { redrive: { deadline: null } });
    stands(accepted(verdict, 'the decision'), STATE.PERMANENT_FAILURE);
    check(verdict.ok, 'the decision is accepted');
    same([verdict.redriven, verdict.redriveRefused], [null, 'capacity_exceeded'], 'the new job');
    same((await viewOf(store, job.id)).redrivenTo, null, 'link');
  },

  'what is not well formed throws, and the job stays UNCERTAIN': async (opened) => {
    const { store } = opened;
    const job = await openStepJob(opened);
    const bad: readonly Readonly<Record<string, unknown>>[] = [
      { token: 0 },
      { decision: 'maybe' },
      { by: { actor: '' } },
      { steps: [{ key: '', tookPlace: true }] },
      { steps: [{ key: 'wire', tookPlace: 'yes' }] },
      { steps: [{ key: 'wire', tookPlace: true, result: 7n }] },
    ];
    for (const options of bad) {
      const what = `a decision with ${Object.keys(options).join()}`;
      await rejects(() => decideJob(store, job, 'retry', options), 'invalid_input', what);
    }
    same(await jobOf(store, job.id), job, 'the uncertain job');
    await store.enqueue([jobRequest()]);
  },
});
