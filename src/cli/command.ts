/** How a command is declared: once, with its example, its JSON shape and its exit codes, so that help and reference agree. */
import type { Command } from 'commander';
import type { CliContext, CommonOptions, Run } from './context.ts';
import { lookOf } from './context.ts';
import type { ExitName } from './exit.ts';
import { safeJson } from './output.ts';

/** What a command says of itself. */
export interface CommandNotes {
  /** Complete command lines, one each. */
  readonly examples: readonly string[];
  /** The shape of what `--json` prints, in the notation of TypeScript. */
  readonly json: string;
  /** Exit codes beside 0, 1, 2, 6 and the interruptions, which every command may have. */
  readonly exits: readonly ExitName[];
}

export interface CommandSpec<Options extends CommonOptions> extends CommandNotes {
  /** Name and arguments as in usage: `show [id]`. */
  readonly usage: string;
  readonly summary: string;
  /** What a reader must know beyond the summary. */
  readonly details?: string;
  readonly options?: (command: Command) => void;
  readonly run: (run: Run<Options>) => Promise<void>;
  /** The command needs no store. */
  readonly withoutStore?: boolean;
}

/** A command that can be added to a program. */
export type AddCommand = (program: Command, context: CliContext) => void;

const notes = new WeakMap<Command, CommandNotes>();

/** What the command was declared with; the root has nothing of its own. */
export function notesOf(command: Command): CommandNotes | undefined {
  return notes.get(command);
}

/** Declares a command with the options all of them share. */
export function defineCommand<Options extends CommonOptions>(spec: CommandSpec<Options>): AddCommand {
  return (program, context) => {
    const command = program.command(spec.usage).summary(spec.summary);
    command.description(spec.details === undefined ? spec.summary : `${spec.summary}\n\n${spec.details}`);
    if (spec.withoutStore !== true) {
      command.option('--store <url>', 'sqlite:FILE, or the path of the file (default: $CUSTODY_STORE)');
    }
    command.option('--json', 'print JSON, and errors as JSON');
    spec.options?.(command);
    const { examples, json, exits } = spec;
    notes.set(command, { examples, json, exits });
    const shown = examples.map((example) => `  $ ${example}`).join('\n');
    command.addHelpText('after', `\nExample${examples.length > 1 ? 's' : ''}:\n${shown}`);
    command.action(async () => {
      const options = command.opts<Options>();
      const isJson = options.json === true;
      await spec.run({ context, options, args: command.args, json: isJson, look: lookOf(context, 'stdout') });
    });
  };
}

/** Prints the answer of a command: one JSON document, or text. */
export async function answer(run: Run, value: unknown, text: string | (() => string)): Promise<void> {
  const shown = run.json ? `${safeJson(value)}\n` : typeof text === 'string' ? text : text();
  await run.context.stdout.write(shown);
}
