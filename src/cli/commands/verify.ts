/** `custody verify` proves one job, or every job, from its evidence: in constant memory, stoppable, and to be resumed. */
import { limits } from '../../core/index.ts';
import { type Fault, verifyJob } from '../../evidence/index.ts';
import type { Store } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import {
  breathe,
  type CommonOptions,
  type Inspector,
  progressOf,
  type Run,
  storeUrl,
  withStore,
} from '../context.ts';
import { CliError, Interrupted, notFound } from '../errors.ts';
import { parseId, wholeNumber } from '../options.ts';
import { paint, plain } from '../output.ts';

interface VerifyOptions extends CommonOptions {
  readonly after?: number;
  readonly until?: number;
}

/** What is wrong with one job. `unreadable`: its rows cannot even be read. */
interface JobFault {
  readonly id: number;
  readonly code: Fault['code'] | 'unreadable';
  readonly at: number | null;
  readonly detail: string;
}

interface Tally {
  jobs: number;
  entries: number;
  lastId: number;
  readonly faults: JobFault[];
  more: number;
}

/** Faults that are listed; the rest are counted. */
const FAULTS_LISTED_MAX = 1_000;
/** Jobs between two looks at signals and the bar. */
const STRIDE = 50;

export const addVerify: AddCommand = defineCommand<VerifyOptions>({
  usage: 'verify [id]',
  summary: 'prove the stored state of one job, or of every job, from its evidence',
  details: `Every payload and every link of every chain is hashed again, every history replayed, and the result compared with
what is stored. It changes nothing. Interrupted, it says where to go on; ranges (--after, --until) may run side by side.`,
  examples: ['custody verify', 'custody verify 17', 'custody verify --after 500000 --until 600000'],
  json: `{ ok: boolean, jobs: number, entries: number, faults: { id, code, at: number | null, detail }[],
  faultsNotListed: number, complete: boolean, lastId: number }`,
  exits: ['not_found', 'unsound'],
  options: (command) => {
    const id = wholeNumber(0, limits.idMax);
    command
      .option('--after <id>', 'only ids above this one', id)
      .option('--until <id>', 'only ids up to this one', id);
  },
  run: async (run) =>
    withStore(run, async (store) => {
      const tally: Tally = { jobs: 0, entries: 0, lastId: run.options.after ?? 0, faults: [], more: 0 };
      if (run.args[0] !== undefined) await verifyOne(store, parseId(run.args[0]), tally);
      else await verifyAll(run, store, tally);
      await report(run, tally, true);
      const faults = tally.faults.length + tally.more;
      if (faults === 0) return;
      const message = `${faults} faults in the evidence of ${tally.jobs} jobs`;
      throw new CliError(
        'unsound',
        'verification_failed',
        message,
        'Keep a copy of the file, and run custody doctor.',
      );
    }),
});

async function verifyOne(store: Store, id: number, tally: Tally): Promise<void> {
  if ((await check(store, id, tally)) === 'unknown') throw notFound(id);
}

async function verifyAll(run: Run<VerifyOptions>, store: Store, tally: Tally): Promise<void> {
  const { after = 0, until = limits.idMax } = run.options;
  const inspector = run.context.openInspector(storeUrl(run));
  const { states } = await store.counts();
  const total = Object.values(states).reduce((sum, jobs) => sum + jobs, 0);
  const progress = progressOf(run, 'verifying', after === 0 && until === limits.idMax ? total : null);
  try {
    for await (const id of idsOf(store, inspector, after)) {
      if (id > until) break;
      if (tally.jobs % STRIDE === 0) {
        await breathe(run.context);
        progress.at(tally.jobs);
      }
      if ((await check(store, id, tally)) === 'unknown' && inspector !== null) {
        // Listed, and gone: pruned meanwhile, or rows of a job that has no submission or no state.
        if (inspector.ids(id - 1, 1)[0] === id)
          fault(tally, { id, code: 'unreadable', at: null, detail: NOT_WHOLE });
      }
      tally.lastId = id;
    }
  } catch (error) {
    if (error instanceof Interrupted) {
      await progress.end();
      await report(run, tally, false);
      if (!run.json) await run.context.stderr.write(`Go on with: custody verify --after ${tally.lastId}\n`);
    }
    throw error;
  } finally {
    await progress.end();
    inspector?.close();
  }
}

const NOT_WHOLE = 'its rows do not make a job: the submission or the state is missing';

/** Ids in order; from beneath the store where that is possible, so that a damaged row hides no other job. */
async function* idsOf(
  store: Store,
  inspector: Inspector | null,
  after: number,
): AsyncGenerator<number, void, undefined> {
  let last = after;
  for (;;) {
    const page =
      inspector?.ids(last, 1_000) ??
      (await store.find({ internal: true, afterId: last, limit: 1_000 })).jobs.map(({ job }) => job.id);
    yield* page;
    const end = page.at(-1);
    if (end === undefined) return;
    last = end;
  }
}

async function check(store: Store, id: number, tally: Tally): Promise<'checked' | 'unknown'> {
  try {
    const evidence = await store.evidence(id);
    if (evidence === null) return 'unknown';
    const { entries, faults } = verifyJob(evidence);
    tally.jobs += 1;
    tally.entries += entries;
    for (const { code, at, detail } of faults) fault(tally, { id, code, at, detail });
  } catch (error) {
    if (!(error instanceof Error) || 'code' in error) throw error;
    tally.jobs += 1;
    fault(tally, { id, code: 'unreadable', at: null, detail: error.message });
  }
  return 'checked';
}

function fault(tally: Tally, found: JobFault): void {
  if (tally.faults.length < FAULTS_LISTED_MAX) tally.faults.push(found);
  else tally.more += 1;
}

async function report(run: Run, tally: Tally, complete: boolean): Promise<void> {
  const { jobs, entries, faults, more, lastId } = tally;
  const ok = faults.length === 0 && complete;
  const value = { ok, jobs, entries, faults, faultsNotListed: more, complete, lastId };
  await answer(run, value, () => {
    const listed = faults.map(({ id, code, at, detail }) => {
      const where = at === null ? '' : ` at entry ${at}`;
      return `job ${id}: ${paint(run.look, 'red', code)}${where}: ${plain(detail)}\n`;
    });
    const rest = more === 0 ? '' : `and ${more} more\n`;
    const sum = `${jobs} jobs, ${entries} entries, ${faults.length + more} faults${complete ? '' : ' so far'}`;
    return `${listed.join('')}${rest}${paint(run.look, faults.length === 0 ? 'green' : 'red', sum)}\n`;
  });
}
