/** `custody show` tells everything about one job, its history with whether it verifies; `custody explain` why it waits. */
import { REFUSAL_TABLE, stateIsTerminal } from '../../core/index.ts';
import { factsOf, timelineOf, type Verification, verifyJob } from '../../evidence/index.ts';
import type { Explanation, JobEvidence, JobView, Store } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { type CommonOptions, type Run, withStore } from '../context.ts';
import { CliError, notFound, usage } from '../errors.ts';
import { adviceFor, JOB_SHAPE, stateName, summaryOfView } from '../job-view.ts';
import { parseId } from '../options.ts';
import { paint, pairs, plain, relativeTime, timeOf } from '../output.ts';

interface ShowOptions extends CommonOptions {
  readonly key?: string;
}

/** One moment of a history, with the text its entry holds the digest of. */
interface Told {
  readonly tick: number;
  readonly state: string;
  readonly sentence: string;
  readonly text: string | null;
}

/** An explanation with the safe next step, and the state by its name. */
interface Explained extends Omit<Explanation, 'facts'> {
  readonly facts: Omit<Explanation['facts'], 'state'> & { readonly state: string };
  readonly next: string | null;
}

const EXPLANATION_SHAPE = '{ claimable, reason, sentence, next, facts }';

export const addShow: AddCommand = defineCommand<ShowOptions>({
  usage: 'show [id]',
  summary: 'tell everything about one job, with its verified history',
  examples: ['custody show 17', 'custody show --key invoice-17'],
  json: `{ job: Job, payload: unknown, report: string | null, policy: { maxAttempts, maxDeliveries, backoffBaseMs,
  backoffMaxMs, reconcileAfterMs, acceptLateReports, reconciles, compensates, requiresEffect, recurrence },
  links: { lineage, redrivenFrom, redrivenTo, parent, purpose }, openSteps: { key, idempotent }[],
  dismissed: { actor, reason, tick } | null, testimony: { tick, worker, token, outcome, report, chained }[],
  contradictions: number, timeline: { tick, state, sentence, text }[],
  verification: { ok, entries, root, faults: { code, at, detail }[] }, explanation: ${EXPLANATION_SHAPE} | null,
  advice: string | null }\nJob = ${JOB_SHAPE}`,
  exits: ['not_found', 'unsound'],
  options: (command) => {
    command.option('--key <idempotencyKey>', 'the job with this idempotency key, in place of an id');
  },
  run: async (run) =>
    withStore(run, async (store) => {
      const id = await idOf(run, store);
      const view = await store.get(id);
      const evidence = await store.evidence(id);
      if (view === null || evidence === null) throw notFound(id);
      const verification = verifyJob(evidence);
      const explanation = stateIsTerminal(view.job.state) ? null : await explain(store, id);
      const timeline = historyOf(evidence);
      const value = { ...detailsOf(view), timeline, verification, explanation, advice: adviceFor(view) };
      await answer(run, value, () => textOf(run, view, timeline, verification, explanation));
      if (verification.ok) return;
      const message = `the evidence of job ${id} does not verify`;
      throw new CliError(
        'unsound',
        'verification_failed',
        message,
        'Keep a copy of the file, and run custody doctor.',
      );
    }),
});

async function idOf(run: Run<ShowOptions>, store: Store): Promise<number> {
  const { key } = run.options;
  if (key === undefined) return parseId(run.args[0]);
  if (run.args.length > 0) throw usage('give an id or --key, not both');
  const held = await store.getByKey(key);
  if (held !== null) return held.id;
  throw new CliError('not_found', 'unknown_key', `no job has the idempotency key ${key}`, 'Check the key.');
}

function detailsOf(view: JobView): Readonly<Record<string, unknown>> {
  const { submission, openSteps } = view.job;
  const { maxAttempts, maxDeliveries, backoffBaseMs, backoffMaxMs, reconcileAfterMs } = submission;
  const { acceptLateReports, reconciles, compensates, requiresEffect, recurrence } = submission;
  return {
    job: summaryOfView(view),
    payload: JSON.parse(view.payload) as unknown,
    report: view.report,
    policy: {
      maxAttempts,
      maxDeliveries,
      backoffBaseMs,
      backoffMaxMs,
      reconcileAfterMs,
      acceptLateReports,
      reconciles,
      compensates,
      requiresEffect,
      recurrence,
    },
    links: {
      lineage: submission.lineage,
      redrivenFrom: submission.inherited?.fromId ?? null,
      redrivenTo: view.redrivenTo,
      parent: submission.internal?.parentId ?? null,
      purpose: submission.internal?.purpose ?? null,
    },
    openSteps,
    dismissed: view.dismissed,
    testimony: view.testimony.map(({ id: _id, digest: _digest, ...told }) => told),
    contradictions: view.contradictions,
  };
}

/** The history in sentences, each with the reason or report it holds only the digest of. */
function historyOf({ job, chain, texts }: JobEvidence): readonly Told[] {
  const facts = factsOf(chain);
  return timelineOf(job.submission, facts, timeOf).map((moment, index) => {
    const fact = facts[index - 1];
    const digest =
      fact === undefined ? null : 'reason' in fact ? fact.reason : 'digest' in fact ? fact.digest : null;
    return { ...moment, text: digest === null ? null : (texts[digest] ?? null) };
  });
}

function textOf(
  run: Run,
  view: JobView,
  timeline: readonly Told[],
  verification: Verification,
  explanation: Explained | null,
): string {
  const { look, context } = run;
  const { job, payload, report, dismissed } = view;
  const { submission } = job;
  const now = context.now();
  const at = (tick: number | null): string | null =>
    tick === null ? null : `${timeOf(tick)} (${relativeTime(tick, now)})`;
  const heading = (text: string): string => `\n${paint(look, 'bold', text)}\n`;
  const mark = verification.ok
    ? paint(look, 'green', `verified: ${verification.entries} entries agree with the stored state`)
    : paint(look, 'red', 'NOT VERIFIED');
  const told = (text: string | null): string =>
    text === null || text === '' ? '' : `\n      ${plain(text)}`;
  return [
    `${paint(look, 'bold', `Job ${job.id}`)}  ${stateName(job)}${job.cause === null ? '' : ` (${job.cause})`}\n`,
    pairs(look, [
      ['kind', `${submission.kind}, revision ${submission.revision}`],
      ['queue', submission.queue],
      ['lane', submission.orderingKey],
      ['idempotency key', submission.idempotencyKey],
      [
        'contract',
        job.idempotent ? 'idempotent: may run again' : 'not idempotent: never runs again by itself',
      ],
      ['attempts', `${job.attempt} of ${submission.maxAttempts}, ${job.delivery} deliveries`],
      ['priority', submission.priority],
      ['token', job.token],
      ['version', job.version],
      ['admitted', at(submission.admittedAt)],
      ['starts', at(job.startAt)],
      ['deadline', at(submission.deadline)],
      ['ended', at(job.endedAt)],
      ['held by', job.lease === null ? null : `${job.lease.worker} until ${at(job.lease.expiresAt)}`],
      ['cancellation', job.cancelRequested ? 'requested' : null],
      ['lineage', submission.lineage],
      ['made again from', submission.inherited?.fromId ?? null],
      ['made again as', view.redrivenTo],
      [
        'parent',
        submission.internal === null
          ? null
          : `${submission.internal.parentId} (${submission.internal.purpose})`,
      ],
      ['open steps', job.openSteps.length === 0 ? null : job.openSteps.map(({ key }) => key).join(', ')],
      ['dismissed', dismissed === null ? null : `by ${dismissed.actor}: ${dismissed.reason ?? ''}`],
      ['payload', payload],
      ['report', report],
    ]),
    explanation === null ? '' : `${heading('Why is it not running?')}  ${sentenceOf(explanation)}\n`,
    adviceFor(view) === null ? '' : `${heading('What to do')}  ${adviceFor(view)}\n`,
    `${heading('History')}`,
    ...timeline.map(({ tick, sentence, text }) => `  ${timeOf(tick)}  ${plain(sentence)}${told(text)}\n`),
    `  ${mark}\n`,
    ...verification.faults.map(({ code, detail }) => `  ${code}: ${plain(detail)}\n`),
    view.testimony.length === 0 ? '' : heading('Testimony that came too late'),
    ...view.testimony.map(
      ({ tick, worker, token, outcome, report: said }) =>
        `  ${timeOf(tick)}  ${plain(worker)} under token ${token} said ${outcome}${told(said)}\n`,
    ),
  ].join('');
}

/** Explains a job as the workers alive now see it. */
async function explain(store: Store, id: number): Promise<Explained | null> {
  const newest = new Map<string, number>();
  for (const { alive, definitions } of await store.workers()) {
    for (const { kind, revision } of alive ? definitions : []) {
      newest.set(kind, Math.max(revision, newest.get(kind) ?? 0));
    }
  }
  const definitions = Array.from(newest, ([kind, revision]) => ({ kind, revision, idempotent: true }));
  const explanation = await store.explain(id, definitions);
  if (explanation === null) return null;
  const { reason } = explanation;
  const next = REFUSAL_TABLE.find(({ code }) => code === reason)?.next ?? null;
  const unknown = reason === 'kind_unknown' || reason === 'revision_unknown';
  const sentence = unknown ? `No worker alive now can run it. ${explanation.sentence}` : explanation.sentence;
  return {
    ...explanation,
    sentence,
    facts: { ...explanation.facts, state: stateName(explanation.facts) },
    next,
  };
}

/** The sentence with what its ticks are as times. */
function sentenceOf({ sentence, facts, next }: Explained): string {
  const ticks = [facts.dueAt, facts.leaseUntil].filter((tick) => tick !== undefined);
  const timed = ticks.reduce((text, tick) => text.replaceAll(`tick ${tick}`, timeOf(tick)), sentence);
  return next === null ? plain(timed) : `${plain(timed)}\n  ${next}`;
}

export const addExplain: AddCommand = defineCommand<CommonOptions>({
  usage: 'explain <id>',
  summary: 'say why a job is not running, as the workers alive now see it',
  examples: ['custody explain 17'],
  json: `{ id, claimable: boolean, reason: string, sentence: string, next: string | null, facts: { state, dueAt?,
  heldById?, worker?, leaseUntil?, pausedBy?, boundRevision?, knownRevision? } }`,
  exits: ['not_found'],
  run: async (run) =>
    withStore(run, async (store) => {
      const id = parseId(run.args[0]);
      const explanation = await explain(store, id);
      if (explanation === null) throw notFound(id);
      await answer(run, { id, ...explanation }, () => `${sentenceOf(explanation)}\n`);
    }),
});
