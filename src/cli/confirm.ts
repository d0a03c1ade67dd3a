/** Destructive verbs ask first: whoever is not at a terminal says `--yes`, and nobody confirms by accident. */
import type { Command } from 'commander';
import type { CommonOptions, Run } from './context.ts';
import { CliError, usage } from './errors.ts';
import { plain } from './output.ts';

export interface ConfirmOptions extends CommonOptions {
  readonly yes?: boolean;
}

export function addConfirmation(command: Command): void {
  command.option('-y, --yes', 'do it without asking');
}

/** Returns when it was confirmed, by `--yes` or by typing `expected`; throws before anything is changed otherwise. */
export async function confirm(run: Run<ConfirmOptions>, what: string, expected = 'yes'): Promise<void> {
  if (run.options.yes === true) return;
  const { context } = run;
  if (run.json || !context.isTerminal.stdin || !context.isTerminal.stderr) {
    throw usage(`this would ${what}, and there is nobody to ask`, 'Add --yes to confirm it.');
  }
  const typed = await context.ask(`This will ${plain(what)}.\nType ${plain(expected)} to go on: `);
  if (typed.trim() === expected) return;
  throw new CliError('usage', 'not_confirmed', 'not confirmed; nothing was changed');
}
