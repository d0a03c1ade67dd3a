/** The whole command line: every command, what happens without one, and how a run ends in an exit code. */
import { Command, CommanderError } from 'commander';
import type { AddCommand } from './command.ts';
import { addBundle, addVerifyBundle } from './commands/bundle.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEnqueue } from './commands/enqueue.ts';
import { addJobs, addUncertain } from './commands/jobs.ts';
import { addMigrate } from './commands/migrate.ts';
import { addRestore, addSnapshot } from './commands/move.ts';
import { addCancel, addDismiss, addPromote, addRedrive } from './commands/operate.ts';
import { addPrune } from './commands/prune.ts';
import { addConfigure, addLanes, addPause, addQueues, addResume, addWorkers } from './commands/queues.ts';
import { addReconcile } from './commands/reconcile.ts';
import { addExplain, addShow } from './commands/show.ts';
import { addVerify } from './commands/verify.ts';
import { addWork } from './commands/work.ts';
import { type CliContext, lookOf } from './context.ts';
import { type Failure, failureOf, Interrupted } from './errors.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { paint, plainLines, safeJson } from './output.ts';

/** Every command under its heading, in the order of help and reference. */
const GROUPS: readonly (readonly [heading: string, commands: readonly AddCommand[]])[] = [
  ['Work:', [addWork, addEnqueue]],
  ['Look:', [addJobs, addShow, addExplain, addUncertain, addQueues, addLanes, addWorkers]],
  [
    'Decide:',
    [addReconcile, addCancel, addPromote, addRedrive, addDismiss, addPause, addResume, addConfigure],
  ],
  ['Prove:', [addVerify, addBundle, addVerifyBundle]],
  ['Keep:', [addDoctor, addMigrate, addSnapshot, addRestore, addPrune]],
];

/** Builds the program. `help` collects what commander prints, so that only one place writes. */
export function buildProgram(context: CliContext, version: string, help: string[] = []): Command {
  const program = new Command('custody')
    .description(
      'Durable jobs that never guess: look at them, decide what nobody could know, prove what happened.',
    )
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help, with an example')
    .helpCommand('help [command]', 'print help for a command')
    .enablePositionalOptions()
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => help.push(text),
      writeErr: (text) => help.push(text),
      outputError: () => undefined,
      getOutHelpWidth: () => context.columns ?? 100,
      getErrHelpWidth: () => context.columns ?? 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(heading);
    for (const add of commands) add(program, context);
  }
  program.addHelpText(
    'after',
    '\nExample:\n  $ custody uncertain --store sqlite:jobs.db\n\nExit codes: 0 is full success; docs/reference/cli.md lists the others.',
  );
  return program;
}

/** Runs one command line, `argv` without node and script, and answers its exit code. Never throws. */
export async function runCli(
  argv: readonly string[],
  context: CliContext,
  version: string,
): Promise<ExitCode> {
  const help: string[] = [];
  try {
    await buildProgram(context, version, help).parseAsync(argv, { from: 'user' });
    return EXIT.success;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) {
      await context.stdout.write(help.join(''));
      return EXIT.success;
    }
    if (error instanceof CommanderError && error.code === 'commander.help') {
      await context.stderr.write(help.join(''));
      return EXIT.usage;
    }
    const failure = failureOf(error);
    if (!(error instanceof Interrupted && error.exit === 'closed_pipe'))
      await tellFailure(argv, context, failure);
    return EXIT[failure.exit];
  }
}

async function tellFailure(argv: readonly string[], context: CliContext, failure: Failure): Promise<void> {
  const { code, message, next, exit } = failure;
  const end = argv.indexOf('--');
  if (argv.slice(0, end < 0 ? argv.length : end).includes('--json')) {
    const error = { code, message, next, exit: EXIT[exit] };
    await context.stderr.write(`${safeJson({ error })}\n`);
    return;
  }
  const look = lookOf(context, 'stderr');
  const rest = next === null ? '' : `  ${plainLines(next)}\n`;
  await context.stderr.write(`${paint(look, 'red', 'custody:')} ${plainLines(message)}\n${rest}`);
}
