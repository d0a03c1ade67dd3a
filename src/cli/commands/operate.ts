/** Verbs on jobs, one or many: cancel, promote, dismiss and redrive, each bound to what was seen when it was confirmed. */

import type { Command } from 'commander';
import { type AdmissionRefusal, limits, type Refusal, STATE, type State } from '../../core/index.ts';
import type { By, FindQuery, Store } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { addConfirmation, type ConfirmOptions, confirm } from '../confirm.ts';
import { breathe, progressOf, type Run, withStore } from '../context.ts';
import { CliError, notFound, refusedError, usage } from '../errors.ts';
import { addBy, type ByOptions, byOf, moment, parseId, wholeNumber } from '../options.ts';
import { paint } from '../output.ts';
import { addFilters, allJobs, type FilterOptions, hasFilter, queryOf } from '../selection.ts';

interface OperateOptions extends ByOptions, ConfirmOptions, FilterOptions {
  readonly version?: number;
  readonly all?: boolean;
  readonly max?: number;
  readonly dryRun?: boolean;
  readonly deadline?: string;
}

/** A job as it was seen when it was chosen. */
interface Chosen {
  readonly id: number;
  readonly version: number | null;
}

/** What became of one job. */
interface Done extends Chosen {
  readonly refused: Refusal | AdmissionRefusal | null;
  readonly text: string;
  readonly newId?: number | null;
}

interface Verb {
  readonly name: 'cancel' | 'promote' | 'dismiss' | 'redrive';
  /** As in: This will ... 3 jobs. */
  readonly phrase: string;
  readonly asks: boolean;
  /** States a filter is narrowed to when it names none. */
  readonly states: readonly State[];
  readonly act: (store: Store, chosen: Chosen, by: By, run: Run<OperateOptions>) => Promise<Done>;
}

const UNRESOLVED: readonly State[] = [
  STATE.PENDING,
  STATE.SCHEDULED,
  STATE.LEASED,
  STATE.RUNNING,
  STATE.UNCERTAIN,
];
const ENDED_BADLY: readonly State[] = [STATE.PERMANENT_FAILURE, STATE.CANCELLED, STATE.DEAD_LETTERED];

const SHAPE = `{ done: { id, newId: number | null }[], refused: { id, code }[], dryRun: boolean }`;

function addSelection(command: Command): void {
  addFilters(command);
  command
    .option('--all', 'every job the verb applies to')
    .option('--max <count>', 'at most this many jobs of the filter', wholeNumber(1, limits.idMax))
    .option(
      '--version <version>',
      'with one id: refuse unless the job still has this version',
      wholeNumber(0, limits.idMax),
    );
}

function define(
  verb: Verb,
  spec: { readonly summary: string; readonly details: string; readonly examples: readonly string[] },
): AddCommand {
  return defineCommand<OperateOptions>({
    usage: `${verb.name} [ids...]`,
    ...spec,
    json: SHAPE,
    exits: ['not_found', 'refused', 'partial'],
    options: (command) => {
      addSelection(command);
      if (verb.name === 'redrive') {
        command
          .option('--dry-run', 'say what would happen and change nothing')
          .option('--deadline <moment>', 'deadline of the new jobs (default: none)');
      }
      addBy(command, verb.name === 'promote' ? 'optional' : 'required');
      if (verb.asks) addConfirmation(command);
    },
    run: (run) => operate(run, verb),
  });
}

async function operate(run: Run<OperateOptions>, verb: Verb): Promise<void> {
  const { dryRun = false, version, deadline } = run.options;
  const ids = run.args.map(parseId);
  const filtered = hasFilter(run.options) || run.options.all === true;
  if (filtered === ids.length > 0) {
    throw usage(
      `${verb.name} needs ids or a filter, and not both`,
      'Give ids, a filter such as --kind, or --all.',
    );
  }
  if (version !== undefined && ids.length !== 1) throw usage('--version goes with one id only');
  if (deadline !== undefined) moment(deadline, run.context.now(), '--deadline');
  const by = byOf(run);
  await withStore(run, async (store) => {
    const chosen = filtered
      ? await chooseByFilter(run, store, verb)
      : await chooseIds(store, ids, version ?? null);
    if (chosen.length > 0 && verb.asks && !dryRun) await confirm(run, `${verb.phrase} ${countOf(chosen)}`);
    const progress = progressOf(run, verb.name, chosen.length);
    const results: Done[] = [];
    try {
      for (const one of chosen) {
        await breathe(run.context);
        results.push(await verb.act(store, one, by, run));
        progress.at(results.length);
      }
    } finally {
      await progress.end();
      await report(run, verb, results, chosen.length);
    }
    judge(verb, results);
  });
}

function countOf(chosen: readonly Chosen[]): string {
  const [first] = chosen;
  return chosen.length === 1 && first !== undefined ? `job ${first.id}` : `${chosen.length} jobs`;
}

async function chooseByFilter(
  run: Run<OperateOptions>,
  store: Store,
  verb: Verb,
): Promise<readonly Chosen[]> {
  const asked = queryOf(run.options);
  const query: FindQuery = { ...asked, states: asked.states ?? verb.states };
  const chosen: Chosen[] = [];
  for await (const { job, redrivenTo, dismissed } of allJobs(run.context, store, query)) {
    if (chosen.length === (run.options.max ?? Number.POSITIVE_INFINITY)) break;
    const isDone =
      (verb.name === 'redrive' && redrivenTo !== null) ||
      (verb.name === 'dismiss' && dismissed !== null) ||
      (verb.name === 'cancel' && job.cancelRequested);
    if (!isDone) chosen.push({ id: job.id, version: job.version });
  }
  return chosen;
}

/** Ids that were typed must all be there before anything is done. */
async function chooseIds(
  store: Store,
  ids: readonly number[],
  version: number | null,
): Promise<readonly Chosen[]> {
  for (const id of ids) {
    if ((await store.get(id)) === null) throw notFound(id);
  }
  return [...new Set(ids)].map((id) => ({ id, version }));
}

async function report(
  run: Run<OperateOptions>,
  verb: Verb,
  results: readonly Done[],
  wanted: number,
): Promise<void> {
  const done = results.filter(({ refused }) => refused === null);
  const refused = results.filter((one) => one.refused !== null);
  const value = {
    done: done.map(({ id, newId = null }) => ({ id, newId })),
    refused: refused.map(({ id, refused: code }) => ({ id, code })),
    dryRun: run.options.dryRun === true,
  };
  await answer(run, value, () => {
    // A single refusal is told once, as the error it ends with.
    if (results.length === 1 && refused.length === 1) return '';
    const lines = results.map(({ text, refused: code }) =>
      code === null ? text : paint(run.look, 'yellow', text),
    );
    const sum =
      wanted === 1 ? [] : [`${verb.name}: ${done.length} done, ${refused.length} refused, of ${wanted}`];
    return `${[...lines, ...sum].join('\n')}\n`;
  });
}

function judge(verb: Verb, results: readonly Done[]): void {
  const [first] = results;
  const refused = results.filter((one) => one.refused !== null);
  if (refused.length === 0) return;
  if (results.length === 1 && first !== undefined && first.refused !== null) {
    throw refusedError(`${verb.name} of job ${first.id} was refused`, first.refused);
  }
  const all = refused.length === results.length;
  throw new CliError(
    all ? 'refused' : 'partial',
    all ? 'all_refused' : 'partly_refused',
    `${verb.name} was refused for ${refused.length} of ${results.length} jobs`,
    'The output says which and why.',
  );
}

function told(
  chosen: Chosen,
  verdict: { readonly ok: boolean; readonly refused?: Refusal | AdmissionRefusal },
  text: string,
): Done {
  const refused = verdict.refused ?? null;
  return {
    ...chosen,
    refused,
    text: refused === null ? text : `Job ${chosen.id}: ${refused.replaceAll('_', ' ')}.`,
  };
}

export const addCancel: AddCommand = define(
  {
    name: 'cancel',
    phrase: 'cancel',
    asks: true,
    states: UNRESOLVED,
    act: async (store, chosen, by) => {
      const verdict = await store.cancel({ ...chosen, by });
      const asked = verdict.ok && verdict.job.state !== STATE.CANCELLED;
      const text = asked
        ? `Job ${chosen.id} was asked to stop: it is cancelled at its next transition.`
        : `Job ${chosen.id} is cancelled.`;
      return told(chosen, verdict, text);
    },
  },
  {
    summary: 'cancel jobs; one that runs or is UNCERTAIN is asked to, and it sticks',
    details: 'Name jobs by id, or by a filter. Each is cancelled only as it was seen when you confirmed.',
    examples: [
      "custody cancel 17 --reason 'customer withdrew'",
      "custody cancel --kind mail --reason 'wrong list' --yes",
    ],
  },
);

export const addPromote: AddCommand = define(
  {
    name: 'promote',
    phrase: 'start now',
    asks: false,
    states: [STATE.SCHEDULED],
    act: async (store, chosen, by) =>
      told(chosen, await store.promote({ ...chosen, by }), `Job ${chosen.id} may start now.`),
  },
  {
    summary: 'let SCHEDULED jobs start now',
    details: 'Name jobs by id, or by a filter.',
    examples: ['custody promote 17'],
  },
);

export const addDismiss: AddCommand = define(
  {
    name: 'dismiss',
    phrase: 'dismiss',
    asks: true,
    states: ENDED_BADLY,
    act: async (store, chosen, by) =>
      told(chosen, await store.dismiss({ ...chosen, by }), `Job ${chosen.id} is dismissed.`),
  },
  {
    summary: 'mark ended jobs as looked at: they need nobody any more, and retention may take them',
    details: 'Name jobs by id, or by a filter.',
    examples: ["custody dismiss 17 --reason 'refunded by hand'"],
  },
);

export const addRedrive: AddCommand = define(
  {
    name: 'redrive',
    phrase: 'make a new job of each of',
    asks: true,
    states: ENDED_BADLY,
    act: async (store, chosen, by, { options, context }) => {
      const dryRun = options.dryRun === true;
      const until =
        options.deadline === undefined ? null : moment(options.deadline, context.now(), '--deadline');
      const verdict = await store.redrive({ ...chosen, by, deadline: until, dryRun });
      const newId = verdict.ok ? (verdict.redriven?.id ?? null) : null;
      const text = dryRun
        ? `Job ${chosen.id} would be made again.`
        : `Job ${chosen.id} was made again as job ${newId}.`;
      return { ...told(chosen, verdict, text), newId };
    },
  },
  {
    summary: 'make new jobs of dead, failed or cancelled ones, once each, linked to them',
    details: 'Name jobs by id, or by a filter; --dry-run says for each what would happen.',
    examples: [
      "custody redrive 17 --reason 'the provider is back'",
      "custody redrive --state dead_lettered --kind mail --dry-run --reason 'look first'",
    ],
  },
);
