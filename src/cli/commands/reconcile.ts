/** `custody reconcile` decides an UNCERTAIN attempt: the one decision only somebody who looked can take. */

import { Option } from 'commander';
import { type Decided, limits } from '../../core/index.ts';
import type { ReconcileRequest } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { addConfirmation, type ConfirmOptions, confirm } from '../confirm.ts';
import { withStore } from '../context.ts';
import { CliError, refusedError, usage } from '../errors.ts';
import { JOB_SHAPE, stateName, summaryOf } from '../job-view.ts';
import { addBy, type ByOptions, byOf, collect, moment, parseId, parseJson, wholeNumber } from '../options.ts';

interface ReconcileOptions extends ByOptions, ConfirmOptions {
  readonly token: number;
  readonly decision: Decided;
  readonly version?: number;
  readonly redrive?: boolean;
  readonly deadline?: string;
  readonly step?: readonly string[];
}

const wholeId = wholeNumber(0, limits.idMax);

export const addReconcile: AddCommand = defineCommand<ReconcileOptions>({
  usage: 'reconcile <id>',
  summary: 'decide an UNCERTAIN attempt: it succeeded, it failed, or it may run again',
  details: `The decision is bound to the token of the attempt in question, as \`custody uncertain\` shows it. Say failed only
if the attempt did not take effect and no longer can. A retry is refused where the job is not idempotent.
Of each open step, say whether it took place: --step charge=took-place:'{"id":"r-1"}' or --step charge=did-not.`,
  examples: [
    "custody reconcile 17 --token 42 --decision succeeded --reason 'the provider shows receipt r-881'",
    "custody reconcile 17 --token 42 --decision failed --redrive --reason 'the provider voided it'",
  ],
  json: `{ job: Job, redriven: number | null, redriveRefused: string | null }\nJob = ${JOB_SHAPE}`,
  exits: ['not_found', 'refused', 'partial'],
  options: (command) => {
    command
      .requiredOption('--token <token>', 'token of the attempt in question', wholeNumber(1, limits.tokenMax))
      .addOption(
        new Option('--decision <decision>', 'what became of it')
          .choices(['succeeded', 'failed', 'retry'])
          .makeOptionMandatory(),
      )
      .option('--version <version>', 'refuse unless the job still has this version', wholeId)
      .option('--redrive', 'with failed: make a new job of it in the same commit')
      .option('--deadline <moment>', 'deadline of the new job (default: none)')
      .option('--step <statement>', 'KEY=took-place:JSON or KEY=did-not; may be repeated', collect);
    addBy(command, 'required');
    addConfirmation(command);
  },
  run: async (run) => {
    const { token, decision, version = null, redrive = false, deadline, step = [] } = run.options;
    const id = parseId(run.args[0]);
    const steps = step.map(readStatement);
    if (redrive && decision !== 'failed') throw usage('--redrive goes with --decision failed only');
    if (deadline !== undefined && !redrive) throw usage('--deadline goes with --redrive only');
    const until = deadline === undefined ? null : moment(deadline, run.context.now(), '--deadline');
    const by = byOf(run);
    await confirm(run, `record that attempt ${token} of job ${id} is decided: ${decision}`);
    await withStore(run, async (store) => {
      const again = redrive ? { deadline: until } : null;
      const verdict = await store.reconcile({ id, token, decision, by, steps, version, redrive: again });
      if (!verdict.ok) throw refusedError(`job ${id} was not decided`, verdict.refused);
      const { job, redriven, redriveRefused } = verdict;
      const value = { job: summaryOf(job, null), redriven: redriven?.id ?? null, redriveRefused };
      const made = redriven === null ? '' : `, made again as job ${redriven.id}`;
      await answer(run, value, `Job ${id} is ${stateName(job)}${made}.\n`);
      if (redriveRefused === null) return;
      const { message, next } = refusedError('it was decided, but no new job was made', redriveRefused);
      throw new CliError('partial', redriveRefused, message, next);
    });
  },
});

type StepStatement = NonNullable<ReconcileRequest['steps']>[number];

const STATEMENT = /^(?<key>.+?)=(?:(?<not>did-not)|took-place(?::(?<result>.*))?)$/su;

function readStatement(text: string): StepStatement {
  const { key, not, result } = STATEMENT.exec(text)?.groups ?? {};
  if (key === undefined) {
    throw usage(
      `--step ${text} says nothing`,
      "Give KEY=did-not, or KEY=took-place:JSON with the step's result.",
    );
  }
  if (not !== undefined) return { key, tookPlace: false };
  return { key, tookPlace: true, result: result === undefined ? null : parseJson(result, `--step ${key}`) };
}
