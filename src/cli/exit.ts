/** Exit codes of the command line: 0 is full success and nothing else, and each class of failure has its own. */

/** Every exit code with what it means, in the order of the reference. */
export const EXIT_TABLE = [
  { code: 0, name: 'success', meaning: 'Everything that was asked for was done.' },
  {
    code: 1,
    name: 'internal',
    meaning: 'A fault of Custody itself; please report it with what was printed.',
  },
  {
    code: 2,
    name: 'usage',
    meaning: 'The command line or its input is wrong, or a confirmation is missing; nothing was changed.',
  },
  { code: 3, name: 'not_found', meaning: 'There is no such job, key or file.' },
  {
    code: 4,
    name: 'refused',
    meaning: 'The store refused: a conflict, a race that was lost, a state the command does not apply to.',
  },
  {
    code: 5,
    name: 'partial',
    meaning: 'Some of what was asked for was done and some was not; the output says which.',
  },
  {
    code: 6,
    name: 'storage',
    meaning: 'The store cannot be opened or used: missing, full, read-only, damaged, foreign, newer, sealed.',
  },
  { code: 7, name: 'unsound', meaning: 'A verification failed, or the doctor found a fault.' },
  {
    code: 8,
    name: 'forced',
    meaning: 'Ended at once by a second signal: what was running is left to its lease.',
  },
  {
    code: 9,
    name: 'unclean_stop',
    meaning:
      'A worker stopped while handlers still ran: what they held was given up, or is left to its lease.',
  },
  { code: 130, name: 'interrupted', meaning: 'Ended by SIGINT before it was done.' },
  { code: 141, name: 'closed_pipe', meaning: 'The reader of the output went away before it was done.' },
  { code: 143, name: 'terminated', meaning: 'Ended by SIGTERM before it was done.' },
] as const;

export type ExitName = (typeof EXIT_TABLE)[number]['name'];
export type ExitCode = (typeof EXIT_TABLE)[number]['code'];

/** Exit codes by name. */
export const EXIT = Object.fromEntries(EXIT_TABLE.map(({ name, code }) => [name, code])) as Readonly<
  Record<ExitName, ExitCode>
>;
