/** The ten states of a job, their codes and their table: a code never changes its meaning, whatever store it was read from. */
import { isTick } from './ticks.ts';

/** State codes, equal everywhere a state is stored as a number. */
export const STATE = {
  PENDING: 0,
  SCHEDULED: 1,
  LEASED: 2,
  RUNNING: 3,
  SUCCEEDED: 4,
  RETRYABLE_FAILURE: 5,
  PERMANENT_FAILURE: 6,
  CANCELLED: 7,
  UNCERTAIN: 8,
  DEAD_LETTERED: 9,
} as const;

/** A state's name in the code. */
export type StateName = keyof typeof STATE;

/** A state code, 0 to 9. */
export type State = (typeof STATE)[StateName];

/** One row of the table of states. */
export interface StateRow {
  readonly code: State;
  readonly name: StateName;
  /** Whether the state is final: a job in it is never moved again. */
  readonly terminal: boolean;
  /** What a job in this state is, in one sentence. */
  readonly meaning: string;
  /** The other states that one recorded transition may lead to, in code order. */
  readonly leaves: readonly State[];
}

/** Every state by code: the source of the reference page. */
export const STATE_TABLE: readonly StateRow[] = [
  {
    code: STATE.PENDING,
    name: 'PENDING',
    terminal: false,
    meaning: 'Admitted and startable at once, held back only by its lane, its queue or the lack of a worker.',
    leaves: [STATE.LEASED, STATE.CANCELLED, STATE.DEAD_LETTERED],
  },
  {
    code: STATE.SCHEDULED,
    name: 'SCHEDULED',
    terminal: false,
    meaning: 'Waits for its start tick: a delay, a retry, a snooze or the next slot of a recurrence.',
    leaves: [STATE.LEASED, STATE.CANCELLED, STATE.DEAD_LETTERED],
  },
  {
    code: STATE.LEASED,
    name: 'LEASED',
    terminal: false,
    meaning: 'A worker has custody under a token and has not called the handler yet.',
    leaves: [STATE.PENDING, STATE.RUNNING, STATE.CANCELLED, STATE.DEAD_LETTERED],
  },
  {
    code: STATE.RUNNING,
    name: 'RUNNING',
    terminal: false,
    meaning: 'The handler was begun under the current token, so from here on it may have touched the world.',
    leaves: [
      STATE.PENDING,
      STATE.SCHEDULED,
      STATE.SUCCEEDED,
      STATE.PERMANENT_FAILURE,
      STATE.CANCELLED,
      STATE.UNCERTAIN,
      STATE.DEAD_LETTERED,
    ],
  },
  {
    code: STATE.SUCCEEDED,
    name: 'SUCCEEDED',
    terminal: true,
    meaning: 'Success was reported in time, or decided afterwards.',
    leaves: [],
  },
  {
    code: STATE.RETRYABLE_FAILURE,
    name: 'RETRYABLE_FAILURE',
    terminal: false,
    meaning:
      'A failed attempt with others left: an answer of the procedures, never stored, since the same transition makes it SCHEDULED or PENDING.',
    leaves: [],
  },
  {
    code: STATE.PERMANENT_FAILURE,
    name: 'PERMANENT_FAILURE',
    terminal: true,
    meaning: 'Failed in a way no retry can mend, or decided to have failed; also where invalid codes end.',
    leaves: [],
  },
  {
    code: STATE.CANCELLED,
    name: 'CANCELLED',
    terminal: true,
    meaning: 'Cancelled on request before it succeeded.',
    leaves: [],
  },
  {
    code: STATE.UNCERTAIN,
    name: 'UNCERTAIN',
    terminal: false,
    meaning:
      'Nobody can tell whether the last attempt took effect: it rests until a recorded decision moves it.',
    leaves: [STATE.PENDING, STATE.SCHEDULED, STATE.SUCCEEDED, STATE.PERMANENT_FAILURE, STATE.CANCELLED],
  },
  {
    code: STATE.DEAD_LETTERED,
    name: 'DEAD_LETTERED',
    terminal: true,
    meaning: 'Given up without success: attempts, deliveries or the time to the deadline are used up.',
    leaves: [],
  },
];

/** State names by code. */
export const STATE_NAMES: readonly StateName[] = STATE_TABLE.map((row) => row.name);

/**
 * Whether a value is a state code.
 *
 * @example
 * ```ts
 * stateIsValid(9); // true
 * stateIsValid(10); // false
 * ```
 */
export function stateIsValid(state: unknown): state is State {
  return isTick(state) && state <= STATE.DEAD_LETTERED;
}

/**
 * Whether a job in this state is never moved again. UNCERTAIN is not terminal: it waits for a decision. An invalid code
 * is no state and so not terminal either.
 *
 * @example
 * ```ts
 * stateIsTerminal(STATE.CANCELLED); // true
 * stateIsTerminal(STATE.UNCERTAIN); // false
 * ```
 */
export function stateIsTerminal(state: number): boolean {
  return (
    state === STATE.SUCCEEDED ||
    state === STATE.PERMANENT_FAILURE ||
    state === STATE.CANCELLED ||
    state === STATE.DEAD_LETTERED
  );
}

/**
 * Whether a worker has custody of a job in this state; false for an invalid code.
 *
 * @example
 * ```ts
 * stateHoldsLease(STATE.RUNNING); // true
 * stateHoldsLease(STATE.UNCERTAIN); // false: the lease is gone, the doubt is not
 * ```
 */
export function stateHoldsLease(state: number): boolean {
  return state === STATE.LEASED || state === STATE.RUNNING;
}

/**
 * Whether a job in this state waits to be claimed, now or once it is due; false for an invalid code.
 *
 * @example
 * ```ts
 * stateAwaitsWorker(STATE.SCHEDULED); // true
 * ```
 */
export function stateAwaitsWorker(state: number): boolean {
  return state === STATE.PENDING || state === STATE.SCHEDULED;
}
