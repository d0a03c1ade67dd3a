/** Whether a job may still be cancelled, and what its end leaves to be undone: a cancel that comes too late changes nothing. */
import { STATE, type State, stateIsValid } from './states.ts';

/**
 * Whether a job in this state can be cancelled from outside. A RUNNING one cannot: only its handler can stop it. An
 * UNCERTAIN one cannot either, since cancelling would pretend to know that nothing happened.
 *
 * @example
 * ```ts
 * cancelIsLegal(STATE.LEASED); // true
 * cancelIsLegal(STATE.RUNNING); // false
 * ```
 */
export function cancelIsLegal(state: number): boolean {
  return (
    state === STATE.PENDING ||
    state === STATE.SCHEDULED ||
    state === STATE.LEASED ||
    state === STATE.RETRYABLE_FAILURE
  );
}

/**
 * The state a cancel leads to: CANCELLED where it is legal, the same state where it lost the race, and PERMANENT_FAILURE
 * for a code that never was a state.
 *
 * @example
 * ```ts
 * cancelNextState(STATE.PENDING); // STATE.CANCELLED
 * cancelNextState(STATE.SUCCEEDED); // STATE.SUCCEEDED
 * cancelNextState(42); // STATE.PERMANENT_FAILURE
 * ```
 */
export function cancelNextState(state: number): State {
  if (cancelIsLegal(state)) return STATE.CANCELLED;
  return stateIsValid(state) ? state : STATE.PERMANENT_FAILURE;
}

/**
 * Whether something may have to be undone: the job ever ran, and ended in PERMANENT_FAILURE or CANCELLED, so that part
 * of its effect may stand. It only says so; nothing is run here.
 *
 * @example
 * ```ts
 * compensationIsRequired(true, STATE.CANCELLED); // true
 * compensationIsRequired(false, STATE.CANCELLED); // false: never began
 * ```
 */
export function compensationIsRequired(everRan: boolean, finalState: number): boolean {
  return everRan && (finalState === STATE.PERMANENT_FAILURE || finalState === STATE.CANCELLED);
}
