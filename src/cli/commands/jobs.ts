/** `custody jobs` lists jobs, a page at a time; `custody uncertain` lists what waits for a person and says what to do. */
import type { JobView, Store } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { type CommonOptions, type Run, withStore } from '../context.ts';
import { CliError, usage } from '../errors.ts';
import { adviceFor, JOB_HEADS, JOB_SHAPE, jobRow, stateName, summaryOfView } from '../job-view.ts';
import { pageLimit, wholeNumber } from '../options.ts';
import { type Look, paint, plain, relativeTime, table, timeOf } from '../output.ts';
import { addFilters, type FilterOptions, hasFilter, queryOf } from '../selection.ts';

interface PageOptions extends CommonOptions {
  readonly after?: number;
  readonly limit?: number;
}

interface JobsOptions extends FilterOptions, PageOptions {
  readonly key?: string;
}

const afterId = wholeNumber(0, Number.MAX_SAFE_INTEGER);

export const addJobs: AddCommand = defineCommand<JobsOptions>({
  usage: 'jobs',
  summary: 'list jobs, oldest first, a page at a time',
  examples: ['custody jobs --state uncertain,dead_lettered --limit 20'],
  json: `{ jobs: Job[], nextAfter: number | null, tombstone: { id } | null }\nJob = ${JOB_SHAPE}`,
  exits: ['not_found'],
  options: (command) => {
    addFilters(command);
    command
      .option('--key <idempotencyKey>', 'the job with this idempotency key; with no other filter')
      .option('--after <id>', 'only ids above this one: the next page', afterId)
      .option('--limit <count>', 'jobs a page, 1 to 1000 (default: 100)', pageLimit);
  },
  run: async (run) =>
    withStore(run, (store) => (run.options.key === undefined ? list(run, store) : byKey(run, store))),
});

async function list(run: Run<JobsOptions>, store: Store): Promise<void> {
  const { after, limit } = run.options;
  const page = { afterId: after ?? 0, limit: limit ?? 100 };
  const { jobs, nextAfterId } = await store.find({ ...queryOf(run.options), ...page });
  const value = { jobs: jobs.map(summaryOfView), nextAfter: nextAfterId, tombstone: null };
  await answer(run, value, () => jobTable(run, jobs, nextAfterId));
}

async function byKey(run: Run<JobsOptions>, store: Store): Promise<void> {
  const { key = '' } = run.options;
  if (hasFilter(run.options)) throw usage('--key names one job, so it takes no other filter');
  const held = await store.getByKey(key);
  if (held === null) {
    throw new CliError('not_found', 'unknown_key', `no job has the idempotency key ${key}`, 'Check the key.');
  }
  const { id, view } = held;
  const jobs = view === null ? [] : [view];
  const value = { jobs: jobs.map(summaryOfView), nextAfter: null, tombstone: view === null ? { id } : null };
  await answer(run, value, () =>
    view === null
      ? `Job ${id} had this key; it was pruned, and its key is still kept.\n`
      : jobTable(run, jobs, null),
  );
}

function jobTable(run: Run, jobs: readonly JobView[], next: number | null): string {
  const { look, context } = run;
  const now = context.now();
  if (jobs.length === 0) return 'No jobs.\n';
  const more = next === null ? '' : paint(look, 'dim', `More: --after ${next}`);
  return `${table(
    look,
    JOB_HEADS,
    jobs.map((job) => jobRow(job, now)),
  )}${more === '' ? '' : `${more}\n`}`;
}

export const addUncertain: AddCommand = defineCommand<PageOptions>({
  usage: 'uncertain',
  summary: 'list what waits for a person, oldest first, with what to do next',
  examples: ['custody uncertain'],
  json: `{ jobs: (Job & { advice: string | null, outcomes: { tick, worker, token, outcome, report }[] })[], nextAfter: number | null }\nJob = ${JOB_SHAPE}`,
  exits: [],
  options: (command) => {
    command
      .option('--after <id>', 'only ids above this one: the next page', afterId)
      .option('--limit <count>', 'jobs a page, 1 to 1000 (default: 100)', pageLimit);
  },
  run: async (run) =>
    withStore(run, async (store) => {
      const { after, limit } = run.options;
      const page = { afterId: after ?? 0, limit: limit ?? 100 };
      const { jobs, nextAfterId } = await store.find({ needsYou: true, internal: true, ...page });
      const value = {
        jobs: jobs.map((view) => ({
          ...summaryOfView(view),
          advice: adviceFor(view),
          outcomes: view.testimony.map(({ tick, worker, token, outcome, report }) => ({
            tick,
            worker,
            token,
            outcome,
            report,
          })),
        })),
        nextAfter: nextAfterId,
      };
      const now = run.context.now();
      await answer(run, value, () => {
        if (jobs.length === 0) return 'Nothing waits for you.\n';
        const more = nextAfterId === null ? '' : paint(run.look, 'dim', `\nMore: --after ${nextAfterId}\n`);
        return `${jobs.map((view) => inboxEntry(run.look, view, now)).join('\n')}${more}`;
      });
    }),
});

function inboxEntry(look: Look, view: JobView, now: number): string {
  const { job, report, testimony, needsYou } = view;
  const { kind, queue } = job.submission;
  const head = paint(look, 'bold', `Job ${job.id}`);
  const why = paint(look, 'yellow', (needsYou ?? '').replaceAll('_', ' '));
  const since = `${timeOf(job.tick)} (${relativeTime(job.tick, now)})`;
  const lines = [
    `${head}  ${plain(kind)} in ${plain(queue)}, ${stateName(job)} since ${since}: ${why}`,
    ...(report === null || report === '' ? [] : [`  Last report: ${plain(clip(report))}`]),
    ...testimony.map(
      ({ worker, outcome, report: said }) =>
        `  Too late, ${plain(worker)} said ${outcome}: ${plain(clip(said))}`,
    ),
    `  ${adviceFor(view) ?? ''}`,
  ];
  return `${lines.join('\n')}\n`;
}

function clip(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}...` : text;
}
