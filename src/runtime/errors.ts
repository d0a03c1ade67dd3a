/** What a program can handle of the runtime: each error has a stable `code` and says what to do next. */
import { CustodyError } from '../store/errors.ts';

/** The payload cannot be taken; nothing was enqueued. */
export class PayloadRefusedError extends CustodyError {
  readonly code = 'payload_refused';
  /** Where the culprit lies, as in `$.cents`. */
  readonly path: string;

  constructor(kind: string, path: string, problem: string) {
    super(`payload of ${kind}, ${path}: ${problem}`, 'Correct the payload; nothing was enqueued.');
    this.path = path;
  }
}

/** The idempotency key was used before with other content. */
export class IdempotencyConflictError extends CustodyError {
  readonly code = 'idempotency_conflict';
  /** The job the key belongs to, null when it is one of a batch that was not stored. */
  readonly existingId: number | null;

  constructor(key: string, existingId: number | null) {
    super(
      `idempotency key ${JSON.stringify(key)} belongs to ${existingId === null ? 'another job of the batch' : `job ${existingId}`} with other content`,
      'Use the existing job, or another key if this really is other work; nothing was changed.',
    );
    this.existingId = existingId;
  }
}

/** The deadline is not ahead of now and of the start. */
export class DeadlinePassedError extends CustodyError {
  readonly code = 'deadline_passed';

  constructor() {
    super('the deadline is not ahead', 'Give a later deadline, or drop work that is too late to do.');
  }
}

/** The queue holds its bound of unresolved jobs. */
export class CapacityExceededError extends CustodyError {
  readonly code = 'capacity_exceeded';

  constructor(queue: string) {
    super(
      `queue ${queue} holds its bound of unresolved jobs`,
      'Try again when jobs have ended; the same idempotency key is safe.',
    );
  }
}

/** A definition differs from the one a store recorded under the same revision. */
export class DefinitionChangedError extends CustodyError {
  readonly code = 'definition_changed';

  constructor(kinds: readonly string[]) {
    super(
      `changed without a new revision: ${kinds.join(', ')}`,
      'Raise the revision and say how older payloads are upgraded, or set schemaVersion if the schema means the same.',
    );
  }
}

/** The store of this URL is not known, or not there yet. */
export class UnsupportedStoreError extends CustodyError {
  readonly code = 'unsupported_store';

  constructor(url: string) {
    super(`no store for ${url}`, "Use 'memory:' or 'sqlite:path/to/jobs.db'.");
  }
}

/** The job ended otherwise than in success. */
export class JobFailedError extends CustodyError {
  readonly code = 'job_failed';
  readonly id: number;

  constructor(id: number, state: string, reason: string | null) {
    super(
      `job ${id} ended as ${state}${reason === null || reason === '' ? '' : `: ${reason}`}`,
      'Look at the job.',
    );
    this.id = id;
  }
}

/** The wait was over before the job was. */
export class WaitTimeoutError extends CustodyError {
  readonly code = 'wait_timeout';

  constructor(id: number) {
    super(`job ${id} has not ended in time`, 'Wait again, or look at why it is not running.');
  }
}
