/** `custody enqueue` admits one job, with or without its definition at hand. */
import { type JobRequest, limits } from '../../core/index.ts';
import { type EnqueueOptions as EnqueueOptionsOfRuntime, openCustody } from '../../runtime/custody.ts';
import type { AnyDefinition } from '../../runtime/definition.ts';
import type { EnqueueVerdict, Store } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { type CommonOptions, type Run, withStore } from '../context.ts';
import { loadDefinitions } from '../definitions.ts';
import { CliError, refusedError, usage } from '../errors.ts';
import { duration, moment, parseJson, readStdin, wholeNumber } from '../options.ts';

interface EnqueueOptions extends CommonOptions {
  readonly payload: string;
  readonly file?: string;
  readonly key?: string;
  readonly orderingKey?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly delay?: number;
  readonly deadline?: string;
  readonly revision?: number;
  readonly idempotent?: boolean;
}

/** Escapes may make a payload's text six times as long as the payload. */
const STDIN_BYTES_MAX = 8 * limits.payloadBytesMax;

export const addEnqueue: AddCommand = defineCommand<EnqueueOptions>({
  usage: 'enqueue <kind>',
  summary: 'admit one job',
  details: `With --file the payload is checked and the policy taken as the exported definition says. Without it the job is bound to
--revision and admitted as given: not idempotent unless you say so, so that it never runs again by itself.`,
  examples: [
    `custody enqueue charge-card --payload '{"account":"alice","cents":700}' --key invoice-17`,
    'custody enqueue mail --file ./jobs.js --payload - --delay 10m < mail.json',
  ],
  json: `{ status: 'created' | 'duplicate', id: number, ignored: string[] }
ignored: options that differ from the job that was there`,
  exits: ['refused'],
  options: (command) => {
    command
      .requiredOption('--payload <json>', 'the payload; - reads it from the standard input')
      .option('--file <module>', 'module that exports the definitions')
      .option('--key <idempotencyKey>', 'the same key again is this job, not another one')
      .option('--ordering-key <key>', 'jobs of a queue with one key start strictly in order')
      .option('--queue <queue>', 'queue (default: default)')
      .option(
        '--priority <number>',
        'higher first (default: 0)',
        wholeNumber(limits.priorityMin, limits.priorityMax),
      )
      .option('--delay <time>', 'start after this time, such as 10m', duration)
      .option('--deadline <moment>', 'no attempt starts from then on: +2h, or a time with its zone')
      .option(
        '--revision <number>',
        'revision of the definition (default: 1)',
        wholeNumber(limits.revisionMin, limits.revisionMax),
      )
      .option('--idempotent', 'it may run again after an attempt whose outcome is not known');
  },
  run: async (run) => {
    const { payload: given } = run.options;
    const text = given === '-' ? await readStdin(run, STDIN_BYTES_MAX) : given;
    const payload = parseJson(text, 'the payload');
    const definition = await definitionOf(run);
    await withStore(run, async (store) => {
      if (definition === null) await tell(run, await admit(run, store, payload));
      else await admitAsDefined(run, store, definition, payload);
    });
  },
});

async function definitionOf(run: Run<EnqueueOptions>): Promise<AnyDefinition | null> {
  const { file, revision, idempotent } = run.options;
  if (file === undefined) return null;
  if (revision !== undefined || idempotent !== undefined) {
    throw usage('with --file, revision and contract are those of the definition', 'Leave them out.');
  }
  const definitions = await loadDefinitions(file);
  const found = definitions.find(({ kind }) => kind === run.args[0]);
  if (found !== undefined) return found;
  const kinds = definitions.map(({ kind }) => kind as string).join(', ');
  throw usage(`${file} exports no definition of ${run.args[0]}`, `It exports ${kinds}.`);
}

async function admitAsDefined(
  run: Run<EnqueueOptions>,
  store: Store,
  definition: AnyDefinition,
  payload: unknown,
): Promise<void> {
  const { key, orderingKey, queue, priority, delay, deadline } = run.options;
  const options: EnqueueOptionsOfRuntime = {
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(delay === undefined ? {} : { delay }),
    ...(deadline === undefined ? {} : { deadline: moment(deadline, run.context.now(), '--deadline') }),
  };
  const custody = await openCustody(store, { randomId: run.context.randomId });
  const [enqueued] = await custody.enqueueMany(definition, [{ payload, options }]);
  if (enqueued !== undefined) await tellAdmitted(run, enqueued);
}

async function admit(run: Run<EnqueueOptions>, store: Store, payload: unknown): Promise<EnqueueVerdict> {
  const {
    key,
    orderingKey,
    queue,
    priority,
    delay,
    deadline,
    revision = 1,
    idempotent = false,
  } = run.options;
  const request: JobRequest = {
    kind: run.args[0] ?? '',
    revision,
    payload,
    idempotent,
    queue: queue ?? null,
    orderingKey: orderingKey ?? null,
    idempotencyKey: key ?? null,
    priority: priority ?? null,
    delayMs: delay ?? null,
    deadline: deadline === undefined ? null : moment(deadline, run.context.now(), '--deadline'),
  };
  const [verdict] = await store.enqueue([request]);
  if (verdict !== undefined) return verdict;
  throw new CliError('internal', 'internal', 'the store answered nothing');
}

async function tell(run: Run, verdict: EnqueueVerdict): Promise<void> {
  if (verdict.status === 'refused') {
    const held = verdict.id === null ? '' : ` (job ${verdict.id} has the key)`;
    throw refusedError(`the job was not admitted${held}`, verdict.refused);
  }
  if (verdict.status === 'withheld')
    throw new CliError('internal', 'internal', 'a job of its own was withheld');
  const ignored = verdict.status === 'duplicate' ? verdict.ignored : [];
  await tellAdmitted(run, { ...verdict, ignored });
}

async function tellAdmitted(
  run: Run,
  admitted: {
    readonly status: 'created' | 'duplicate';
    readonly id: number;
    readonly ignored: readonly string[];
  },
): Promise<void> {
  const { status, id, ignored } = admitted;
  const differs = ignored.length === 0 ? '' : `; ${ignored.join(', ')} differ and were ignored`;
  const text = status === 'created' ? `Job ${id} was admitted.\n` : `Job ${id} is there already${differs}.\n`;
  await answer(run, { status, id, ignored }, text);
}
