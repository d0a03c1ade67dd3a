/** `custody bundle` writes one job's evidence to a file of its own; `custody verify-bundle` proves it without any store. */
import { open, readFile } from 'node:fs/promises';
import { limits, STATE_NAMES } from '../../core/index.ts';
import { factsOf, makeBundle, timelineOf, verifyBundle } from '../../evidence/index.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { type CommonOptions, withStore } from '../context.ts';
import { CliError, notFound, usage } from '../errors.ts';
import { decodeUtf8, parseId, readStdin } from '../options.ts';
import { paint, plain, timeOf } from '../output.ts';

export const addBundle: AddCommand = defineCommand<CommonOptions & { readonly out?: string }>({
  usage: 'bundle <id>',
  summary: "write one job's evidence as a bundle that verifies without the store",
  details: `A bundle holds the payload, every report and every entry of the job: mind who may read it. Without --out it is
printed in canonical JSON, which leaves characters that a terminal acts on as they are: so never to a terminal.`,
  examples: ['custody bundle 17 --out job-17.json'],
  json: 'with --out: { id, file: string, digest: string, entries: number }; without: the bundle itself',
  exits: ['not_found'],
  options: (command) => {
    command.option('--out <file>', 'write to this file, which must not exist');
  },
  run: async (run) =>
    withStore(run, async (store) => {
      const id = parseId(run.args[0]);
      const evidence = await store.evidence(id);
      if (evidence === null) throw notFound(id);
      const bundle = makeBundle(evidence);
      const text = `${JSON.stringify(bundle)}\n`;
      const { out } = run.options;
      if (out === undefined) {
        if (run.context.isTerminal.stdout) throw usage('a bundle is not for a terminal', 'Give --out FILE.');
        await run.context.stdout.write(text);
        return;
      }
      await writeNew(out, text);
      const entries = bundle.entries.length + bundle.open.length;
      const value = { id, file: out, digest: bundle.digest, entries };
      await answer(run, value, `Wrote ${entries} entries of job ${id} to ${plain(out)}.\n`);
    }),
});

/** Writes a file that must not exist, and is whole when this returns. */
async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      throw new CliError('usage', 'file_exists', `${path} exists already`, 'Name another file.');
    }
    throw error;
  });
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

export const addVerifyBundle: AddCommand = defineCommand<CommonOptions>({
  usage: 'verify-bundle <file>',
  summary: 'verify a bundle of any origin, without any store; - reads the standard input',
  examples: ['custody verify-bundle job-17.json'],
  json: `{ ok: boolean, entries: number, root: string | null, faults: { code, at: number | null, detail }[],
  job: { id, kind, state } | null, timeline: { tick, state, sentence }[] }`,
  exits: ['not_found', 'unsound'],
  withoutStore: true,
  run: async (run) => {
    const [file = '-'] = run.args;
    const text =
      file === '-' ? await readStdin(run, limits.bundleBytesMax) : decodeUtf8(await readFile(file), file);
    const { ok, entries, root, faults, contents } = verifyBundle(text);
    const job = contents?.job;
    const said =
      job === undefined
        ? null
        : { id: job.id, kind: job.submission.kind, state: STATE_NAMES[job.state] ?? '' };
    const timeline =
      contents === null || !ok ? [] : timelineOf(contents.job.submission, factsOf(contents.chain), timeOf);
    await answer(run, { ok, entries, root, faults, job: said, timeline }, () => {
      const lines = timeline.map(({ tick, sentence }) => `  ${timeOf(tick)}  ${plain(sentence)}\n`);
      const wrong = faults.map(({ code, detail }) => `${paint(run.look, 'red', code)}: ${plain(detail)}\n`);
      const head =
        said === null ? 'No job can be read' : `Job ${said.id}, ${plain(said.kind)}: ${said.state}`;
      const mark = ok
        ? paint(run.look, 'green', `verified: ${entries} entries`)
        : paint(run.look, 'red', 'NOT VERIFIED');
      return `${head}, ${mark}\n${lines.join('')}${wrong.join('')}`;
    });
    if (ok) return;
    const next = 'Ask for the bundle again; do not rely on this one.';
    throw new CliError('unsound', 'verification_failed', `${file} does not verify`, next);
  },
});
