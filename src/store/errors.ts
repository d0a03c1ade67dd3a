/** Typed errors of the stores: each has a stable `code` and says what to do next; expected races are never errors. */

/** Base of every error a caller can handle. A bare Error from Custody is a bug or broken storage. */
export abstract class CustodyError extends Error {
  abstract readonly code: string;
  /** The safe next step. */
  readonly next: string;

  constructor(message: string, next: string) {
    super(message);
    this.next = next;
    this.name = new.target.name;
  }
}

/** Something given to Custody is not as it must be; nothing was changed. */
export class InvalidInputError extends CustodyError {
  readonly code = 'invalid_input';
  /** Path to the culprit, such as `jobs[3].priority`. */
  readonly field: string;

  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`, `Correct ${field} and call again; nothing was changed.`);
    this.field = field;
  }
}

/** A snapshot cannot be restored; the store is as it was. */
export class SnapshotRefusedError extends CustodyError {
  readonly code = 'snapshot_refused';
  readonly field: string;

  constructor(
    field: string,
    problem: string,
    next = 'Restore an unaltered snapshot; the store is as it was.',
  ) {
    super(`${field}: ${problem}`, next);
    this.field = field;
  }
}

/** The store was moved and takes no work any more. */
export class StoreSealedError extends CustodyError {
  readonly code = 'store_sealed';
  readonly movedTo: string;

  constructor(movedTo: string) {
    super(
      `this store is sealed: its jobs went to ${movedTo}`,
      `Work on ${movedTo}; reading here still works.`,
    );
    this.movedTo = movedTo;
  }
}

/** A verb was called inside a transaction of the same store, where it would see or hold back what is not committed. */
export class InTransactionError extends CustodyError {
  readonly code = 'in_transaction';

  constructor() {
    super(
      'a transaction of this store is open',
      'Use the transaction it was given, or call when it is over.',
    );
  }
}

/** Ids or tokens are used up, which nothing but a forged counter can bring about. */
export class NumbersExhaustedError extends CustodyError {
  readonly code = 'numbers_exhausted';

  constructor(what: 'ids' | 'tokens') {
    super(`no ${what} are left below 2^53`, 'Restore a snapshot whose counters were not tampered with.');
  }
}

/** The store was closed. */
export class StoreClosedError extends CustodyError {
  readonly code = 'store_closed';

  constructor() {
    super('the store is closed', 'Open it again; whatever was answered before it closed is stored.');
  }
}
