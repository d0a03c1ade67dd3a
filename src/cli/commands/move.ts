/** `custody snapshot` copies a store as JSON lines; `custody restore` proves such a copy and fills an empty store with it. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Option } from 'commander';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { addConfirmation, type ConfirmOptions, confirm } from '../confirm.ts';
import {
  breathe,
  type CommonOptions,
  progressOf,
  type Run,
  storeUrl,
  unlessEnded,
  withStore,
} from '../context.ts';
import { addBy, type ByOptions, byOf } from '../options.ts';
import { LineCollector, lineCount, snapshotLines } from '../snapshot-lines.ts';

export const addSnapshot: AddCommand = defineCommand<CommonOptions>({
  usage: 'snapshot',
  summary: 'copy the whole store, as one moment, to the standard output as JSON lines',
  details: `The last line counts and hashes the others, so a copy that was cut off is refused by restore. The whole snapshot is
held in memory while it is written.`,
  examples: ['custody snapshot > jobs.jsonl'],
  json: `JSON lines either way: { snapshot: { format, clock, takenAt, sealedTo, keepKeysForMs, counters, application } }, then
{ queues | definitions | jobs | keys | effects | acts: row } for each row, then { end: { rows, digest } }`,
  exits: [],
  run: async (run) =>
    withStore(run, async (store) => {
      const snapshot = await store.snapshot();
      const progress = progressOf(run, 'writing', lineCount(snapshot));
      let written = 0;
      try {
        for (const line of snapshotLines(snapshot)) {
          if (written % 200 === 0) await breathe(run.context);
          await run.context.stdout.write(line);
          written += 1;
          progress.at(written);
        }
      } finally {
        await progress.end();
      }
      await breathe(run.context);
    }),
});

interface RestoreOptions extends ByOptions, ConfirmOptions {
  readonly as: 'restart' | 'copy';
}

export const addRestore: AddCommand = defineCommand<RestoreOptions>({
  usage: 'restore [file]',
  summary: 'fill an empty store from a snapshot, after proving every job of it',
  details: `Reads the standard input without a file, or with -. restart keeps every counter: only when the source is gone for
good. copy starts ids and tokens far ahead, so that no token handed out since can be beaten by an old one.
The store is made when it is missing. The whole snapshot is held in memory while it is proven.`,
  examples: [
    "custody restore jobs.jsonl --as copy --store sqlite:new.db --reason 'moved to another disk'",
    'custody snapshot --store old.db | custody restore --as copy --store new.db --yes',
  ],
  json: '{ store: string, as: string, rows: number }',
  exits: ['not_found', 'refused'],
  options: (command) => {
    command.addOption(
      new Option('--as <how>', 'how counters go on').choices(['restart', 'copy']).makeOptionMandatory(),
    );
    addBy(command, 'optional');
    addConfirmation(command);
  },
  run: async (run) => {
    const { as } = run.options;
    const by = byOf(run);
    const url = storeUrl(run);
    await confirm(run, `fill ${url} from a snapshot, as a ${as}`);
    const { snapshot, rows } = await collectLines(run);
    await withStore(run, (store) => store.restore(snapshot, { as, by }), { create: true });
    await answer(run, { store: url, as, rows }, `Restored ${rows} rows.\n`);
  },
});

async function collectLines(run: Run): Promise<{ readonly snapshot: unknown; readonly rows: number }> {
  const [file = '-'] = run.args;
  const input = file === '-' ? Readable.from(run.context.stdin) : createReadStream(file);
  const collector = new LineCollector();
  const progress = progressOf(run, 'reading', null);
  const failed = new Promise<never>((_resolve, reject) => {
    input.once('error', reject);
  });
  try {
    const lines = readLines(run, input, collector, (rows) => progress.at(rows));
    await unlessEnded(run.context, Promise.race([failed, lines]));
  } finally {
    await progress.end();
    input.destroy();
  }
  return { snapshot: collector.finish(), rows: collector.rows };
}

async function readLines(
  run: Run,
  input: Readable,
  collector: LineCollector,
  at: (rows: number) => void,
): Promise<void> {
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    collector.add(line);
    if (collector.rows % 200 === 0) await breathe(run.context);
    at(collector.rows);
  }
}
