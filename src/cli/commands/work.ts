/** `custody work` runs the definitions of a module until it is told to stop, and then gives back what it holds. */
import { once } from 'node:events';
import { limits } from '../../core/index.ts';
import { openCustody } from '../../runtime/custody.ts';
import type { Logger, Worker } from '../../runtime/worker.ts';
import { type AddCommand, defineCommand } from '../command.ts';
import { type CommonOptions, type Run, withStore } from '../context.ts';
import { loadDefinitions } from '../definitions.ts';
import { CliError, Interrupted } from '../errors.ts';
import { collect, duration, wholeNumber } from '../options.ts';
import { plain, safeJson } from '../output.ts';

interface WorkOptions extends CommonOptions {
  readonly concurrency?: number;
  readonly queue?: readonly string[];
  readonly lease?: number;
  readonly grace?: number;
  readonly verbose?: boolean;
}

const GRACE_MS = 30_000;
/** After the grace, handlers are aborted and what they held is settled; a storage that fails must not hold the process. */
const SETTLING_MS = 10_000;

export const addWork: AddCommand = defineCommand<WorkOptions>({
  usage: 'work <file>',
  summary: 'run the definitions a module exports until a signal says stop',
  details: `SIGTERM or SIGINT: it claims nothing more, lets handlers finish for --grace, aborts the rest, settles what the contract
says of their silence, and ends with 0 if all handlers ended within the grace. A second signal ends it at once (exit code 8): what
ran is left to its lease. It handles signals itself, so it works as the first process of a container: start it in exec
form, without a shell or package runner in between that keeps signals for itself.`,
  examples: [
    'custody work ./jobs.js --concurrency 20',
    'exec custody work ./jobs.js --queue payments --lease 30s',
  ],
  json: `JSON lines: { event: 'started', worker, kinds: { kind, revision }[], queues: string[] | null, concurrency },
{ event: 'log', level: 'debug' | 'info' | 'warn' | 'error', message, details },
{ event: 'stopping', why: string, running }, { event: 'stopped', clean: boolean, claimed, settled, lost }`,
  exits: ['not_found', 'refused', 'unclean_stop'],
  options: (command) => {
    command
      .option('--concurrency <count>', 'jobs at one time (default: 10)', wholeNumber(1, limits.claimBatchMax))
      .option('--queue <queue>', 'only this queue; may be repeated (default: all)', collect)
      .option('--lease <time>', 'length of a lease (default: 30s)', duration)
      .option('--grace <time>', 'how long handlers may finish after a signal (default: 30s)', duration)
      .option('--verbose', 'print debug messages too');
  },
  run: async (run) => {
    const definitions = await loadDefinitions(run.args[0] ?? '');
    await withStore(
      run,
      async (store) => {
        const { concurrency = 10, queue, lease } = run.options;
        const custody = await openCustody(store, { logger: loggerOf(run), randomId: run.context.randomId });
        const worker = custody.work(definitions, {
          concurrency,
          ...(queue === undefined ? {} : { queues: queue }),
          ...(lease === undefined ? {} : { leaseMs: lease }),
        });
        await worker.started;
        const kinds = definitions.map(({ kind, revision }) => ({
          kind: kind as string,
          revision: revision as number,
        }));
        const listed = kinds.map(({ kind, revision }) => `${kind}@${revision}`).join(', ');
        const started = { event: 'started', worker: worker.name, kinds, queues: queue ?? null, concurrency };
        await say(run, started, `${worker.name} works on ${listed}`);
        await untilEnded(run);
        await stop(run, worker);
      },
      { create: true },
    );
  },
});

async function untilEnded({ context: { signal } }: Run): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function stop(run: Run<WorkOptions>, worker: Worker): Promise<void> {
  const { grace: graceMs = GRACE_MS } = run.options;
  const reason: unknown = run.context.signal.reason;
  const why = reason instanceof Interrupted ? reason.exit : 'output_failed';
  const { running } = worker.stats();
  await say(run, { event: 'stopping', why, running }, `stopping (${why}): ${running} jobs are running`);
  const stopped = worker.stop({ graceMs });
  const isClean = await within(graceMs, stopped);
  const isAnswered = isClean || (await within(SETTLING_MS, stopped));
  const { claimed, settled, lost } = worker.stats();
  const sum = `stopped: ${claimed} jobs claimed, ${settled} settled, ${lost} lost`;
  await say(run, { event: 'stopped', clean: isClean, claimed, settled, lost }, sum);
  if (isClean) return;
  const message = isAnswered
    ? 'the grace was over before its handlers were: they were aborted, and settled as their contracts say'
    : 'not everything it held could be settled in time: the rest is left to its lease';
  throw new CliError('unclean_stop', 'unclean_stop', message, 'custody uncertain shows what needs somebody.');
}

/** Whether the work was done in time. */
async function within(waitMs: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), waitMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function say(run: Run, event: object, text: string): Promise<void> {
  await run.context.stdout.write(run.json ? `${safeJson(event)}\n` : `${plain(text)}\n`);
}

/** Messages of the worker: events with `--json`, else lines on the error stream. */
function loggerOf(run: Run<WorkOptions>): Logger {
  const log =
    (level: keyof Logger) =>
    (details: object, message: string): void => {
      if (level === 'debug' && run.options.verbose !== true) return;
      const { stdout, stderr } = run.context;
      if (run.json) void stdout.write(`${safeJson({ event: 'log', level, message, details })}\n`);
      else void stderr.write(`${level}: ${plain(message)} ${safeJson(details)}\n`);
    };
  return { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
}
