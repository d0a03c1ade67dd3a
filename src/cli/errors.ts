/** What can go wrong on the command line: each failure has a code, an exit code and the safe next step. */
import { CommanderError } from 'commander';
import {
  ADMISSION_REFUSAL_TABLE,
  type AdmissionRefusal,
  REFUSAL_TABLE,
  type Refusal,
} from '../core/index.ts';
import { EvidenceError } from '../evidence/index.ts';
import { CustodyError } from '../store/errors.ts';
import type { ExitName } from './exit.ts';

/** A failure as it is told: one sentence, a stable code, and what to do next. */
export interface Failure {
  readonly exit: ExitName;
  readonly code: string;
  readonly message: string;
  readonly next: string | null;
}

/** Ends a command with a failure of a known class. */
export class CliError extends Error implements Failure {
  override readonly name = 'CliError';
  readonly exit: ExitName;
  readonly code: string;
  readonly next: string | null;

  constructor(exit: ExitName, code: string, message: string, next: string | null = null) {
    super(message);
    this.exit = exit;
    this.code = code;
    this.next = next;
  }
}

/** The command line was wrong; nothing was changed. */
export function usage(message: string, next: string | null = null): CliError {
  return new CliError('usage', 'usage', message, next);
}

export function notFound(id: number): CliError {
  return new CliError('not_found', 'unknown_job', `no job ${id} is stored`, nextAfter('unknown_job'));
}

/** A refusal of the store, as the failure of a command about one job. */
export function refusedError(what: string, refused: Refusal | AdmissionRefusal): CliError {
  const exit = refused === 'unknown_job' ? 'not_found' : 'refused';
  const row = [...REFUSAL_TABLE, ...ADMISSION_REFUSAL_TABLE].find(({ code }) => code === refused);
  return new CliError(exit, refused, `${what}: ${row?.meaning ?? refused}`, row?.next ?? null);
}

function nextAfter(refused: Refusal): string | null {
  return REFUSAL_TABLE.find(({ code }) => code === refused)?.next ?? null;
}

/** Ended from outside before it was done; `name` says by what. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly exit: 'interrupted' | 'terminated' | 'closed_pipe';

  constructor(exit: 'interrupted' | 'terminated' | 'closed_pipe') {
    super(exit);
    this.exit = exit;
  }
}

/** Errors with a code that are not about the storage. */
const EXIT_OF_CODE: ReadonlyMap<string, ExitName> = new Map<string, ExitName>([
  ['invalid_input', 'usage'],
  ['payload_refused', 'usage'],
  ['unsupported_store', 'usage'],
  ['snapshot_refused', 'refused'],
  ['idempotency_conflict', 'refused'],
  ['deadline_passed', 'refused'],
  ['capacity_exceeded', 'refused'],
  ['definition_changed', 'refused'],
]);

const INTERRUPTIONS = {
  interrupted: 'interrupted; what was done until then is stored',
  terminated: 'terminated; what was done until then is stored',
  closed_pipe: 'the reader of the output went away',
} as const;

/** Any error as a failure to tell. What is none of ours is a fault of Custody and says so. */
export function failureOf(error: unknown): Failure {
  if (error instanceof CliError) return error;
  if (error instanceof Interrupted) {
    return { exit: error.exit, code: error.exit, message: INTERRUPTIONS[error.exit], next: null };
  }
  if (error instanceof CommanderError) {
    return { exit: 'usage', code: 'usage', message: error.message.replace(/^error: /, ''), next: null };
  }
  if (error instanceof CustodyError) {
    const { code, message, next } = error;
    return { exit: EXIT_OF_CODE.get(code) ?? 'storage', code, message, next };
  }
  if (error instanceof EvidenceError) {
    return { exit: 'unsound', code: error.code, message: error.message, next: error.next };
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : String(error);
  if (code === 'ENOENT') return { exit: 'not_found', code, message, next: 'Check the path.' };
  if (/^E[A-Z]+$/.test(code))
    return { exit: 'storage', code, message, next: 'Check the path and its rights.' };
  if (code.startsWith('SQLITE_')) {
    return { exit: 'storage', code, message, next: 'Run `custody doctor` on this store.' };
  }
  return { exit: 'internal', code: 'internal', message, next: 'Report it: this is a fault of Custody.' };
}
