/** Verbs on queues (pause, resume, configure) and the lists of queues, lanes and workers. */
import { limits, STATE_NAMES } from '../../core/index.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { addConfirmation, type ConfirmOptions, confirm } from '../confirm.ts';
import { type CommonOptions, withStore } from '../context.ts';
import { stateCell, stateName } from '../job-view.ts';
import { addBy, type ByOptions, byOf, pageLimit, wholeNumber } from '../options.ts';
import { plain, relativeTime, table, timeOf } from '../output.ts';

const ACT_SHAPE = '{ queue: string, paused: boolean, actor: string, reason: string | null }';

export const addPause: AddCommand = defineCommand<ByOptions & ConfirmOptions>({
  usage: 'pause <queue>',
  summary: 'start nothing in a queue from now on; admission stays open, and what runs goes on',
  examples: ["custody pause payments --reason 'the provider is down'"],
  json: ACT_SHAPE,
  exits: [],
  options: (command) => {
    addBy(command, 'required');
    addConfirmation(command);
  },
  run: async (run) => {
    const [queue = ''] = run.args;
    const by = byOf(run);
    await confirm(run, `start nothing in queue ${queue} until it is resumed`, queue);
    await withStore(run, (store) => store.pause(queue, by));
    await answer(run, { queue, paused: true, ...by }, `Queue ${plain(queue)} is paused.\n`);
  },
});

export const addResume: AddCommand = defineCommand<ByOptions>({
  usage: 'resume <queue>',
  summary: 'let a paused queue start jobs again',
  examples: ['custody resume payments'],
  json: ACT_SHAPE,
  exits: [],
  options: (command) => addBy(command, 'optional'),
  run: async (run) => {
    const [queue = ''] = run.args;
    const by = byOf(run);
    await withStore(run, (store) => store.resume(queue, by));
    await answer(run, { queue, paused: false, ...by }, `Queue ${plain(queue)} is running.\n`);
  },
});

interface ConfigureOptions extends ByOptions, ConfirmOptions {
  readonly maxUnresolved: number | 'none';
}

export const addConfigure: AddCommand = defineCommand<ConfigureOptions>({
  usage: 'configure <queue>',
  summary: 'bound how many unresolved jobs a queue may hold, or lift the bound',
  details: 'At the bound, enqueueing is refused (capacity_exceeded). Jobs beyond a lower bound stay.',
  examples: [
    'custody configure payments --max-unresolved 10000',
    'custody configure payments --max-unresolved none',
  ],
  json: '{ queue: string, maxUnresolved: number | null, actor: string, reason: string | null }',
  exits: [],
  options: (command) => {
    const count = wholeNumber(0, limits.maxUnresolvedMax);
    command.requiredOption('--max-unresolved <count>', 'the bound, or none', (text) =>
      text === 'none' ? text : count(text),
    );
    addBy(command, 'optional');
    addConfirmation(command);
  },
  run: async (run) => {
    const [queue = ''] = run.args;
    const maxUnresolved = run.options.maxUnresolved === 'none' ? null : run.options.maxUnresolved;
    const by = byOf(run);
    const bound = maxUnresolved === null ? 'no bound' : `a bound of ${maxUnresolved} unresolved jobs`;
    await confirm(run, `give queue ${queue} ${bound}`, queue);
    await withStore(run, (store) => store.configure(queue, { maxUnresolved }, by));
    await answer(run, { queue, maxUnresolved, ...by }, `Queue ${plain(queue)} has ${bound}.\n`);
  },
});

export const addQueues: AddCommand = defineCommand<CommonOptions>({
  usage: 'queues',
  summary: 'list queues with their bounds, pauses and jobs by state',
  examples: ['custody queues'],
  json: `{ queues: { queue, maxUnresolved: number | null, paused: { actor, reason, tick } | null, unresolved: number,
  states: { [state]: number } }[], needsYou: number, stranded: number, contradictions: number }`,
  exits: [],
  run: async (run) =>
    withStore(run, async (store) => {
      const queues = await store.queues();
      const { needsYou, stranded, contradictions } = await store.counts();
      const byName = (states: Readonly<Record<number, number>>): Readonly<Record<string, number>> =>
        Object.fromEntries(
          Object.entries(states).map(([code, jobs]) => [STATE_NAMES[Number(code)] ?? code, jobs]),
        );
      const listed = queues.map((queue) => ({ ...queue, states: byName(queue.states) }));
      const totals = { needsYou, stranded, contradictions };
      await answer(run, { queues: listed, ...totals }, () => {
        if (queues.length === 0) return 'No queues.\n';
        const rows = listed.map(({ queue, unresolved, maxUnresolved, paused, states }) => [
          queue,
          unresolved,
          maxUnresolved === null ? '-' : String(maxUnresolved),
          paused === null
            ? ''
            : { text: `by ${paused.actor}: ${paused.reason ?? ''}`, colour: 'yellow' as const },
          Object.entries(states)
            .map(([state, jobs]) => `${state} ${jobs}`)
            .join(', '),
        ]);
        const heads = ['QUEUE', 'UNRESOLVED', 'BOUND', 'PAUSED', 'JOBS'];
        const notes = [
          needsYou > 0 ? `${needsYou} jobs need you: custody uncertain\n` : '',
          stranded > 0 ? `${stranded} jobs can be taken by no worker alive now: custody workers\n` : '',
        ];
        return `${table(run.look, heads, rows)}${notes.join('')}`;
      });
    }),
});

interface LanesOptions extends CommonOptions {
  readonly limit?: number;
}

export const addLanes: AddCommand = defineCommand<LanesOptions>({
  usage: 'lanes',
  summary: 'list lanes with unresolved jobs, longest first, with the job that holds each',
  examples: ['custody lanes --limit 10'],
  json: '{ lanes: { queue, orderingKey, headId, headState, unresolved }[] }',
  exits: [],
  options: (command) => {
    command.option('--limit <count>', 'how many lanes, 1 to 1000 (default: 100)', pageLimit);
  },
  run: async (run) =>
    withStore(run, async (store) => {
      const lanes = await store.lanes(run.options.limit ?? 100);
      const listed = lanes.map((lane) => ({ ...lane, headState: stateName({ state: lane.headState }) }));
      await answer(run, { lanes: listed }, () => {
        if (lanes.length === 0) return 'No lanes with unresolved jobs.\n';
        const rows = lanes.map(({ queue, orderingKey, headId, headState, unresolved }) => [
          queue,
          orderingKey,
          unresolved,
          headId,
          stateCell({ state: headState }),
        ]);
        return table(run.look, ['QUEUE', 'LANE', 'UNRESOLVED', 'HEAD', 'ITS STATE'], rows);
      });
    }),
});

export const addWorkers: AddCommand = defineCommand<CommonOptions & { readonly all?: boolean }>({
  usage: 'workers',
  summary: 'list workers alive now, what they can run and how many jobs they hold',
  examples: ['custody workers', 'custody workers --all'],
  json: '{ workers: { worker, seenAt, alive, definitions: { kind, revision }[], leases }[] }',
  exits: [],
  options: (command) => {
    command.option('--all', 'also workers not seen for 90 seconds');
  },
  run: async (run) =>
    withStore(run, async (store) => {
      const found = await store.workers();
      const workers = found.filter(({ alive, leases }) => alive || leases > 0 || run.options.all === true);
      const now = run.context.now();
      await answer(run, { workers }, () => {
        if (workers.length === 0) return 'No workers alive.\n';
        const rows = workers.map(({ worker, alive, seenAt, leases, definitions }) => [
          worker,
          alive ? { text: 'alive', colour: 'green' as const } : { text: 'gone', colour: 'red' as const },
          `${timeOf(seenAt)} (${relativeTime(seenAt, now)})`,
          leases,
          definitions.map(({ kind, revision }) => `${kind}@${revision}`).join(' '),
        ]);
        return table(run.look, ['WORKER', 'SIGN', 'SEEN', 'HOLDS', 'CAN RUN'], rows);
      });
    }),
});
