/** Checks whose failure says what was claimed, what was expected and what was seen, without any test framework. */
import { AssertionError, deepStrictEqual } from 'node:assert/strict';
import { type Job, type Refusal, STATE, type State } from '../../core/index.ts';
import type { RedriveVerdict, Transacted, Verdict } from '../../store/store.ts';

/** Throws with `claim` unless the condition holds. */
export function check(condition: unknown, claim: string): asserts condition {
  if (!condition) throw new AssertionError({ message: claim, stackStartFn: check });
}

/** Deep and strict equality, with `what` in front of the difference. */
export function same(actual: unknown, expected: unknown, what: string): void {
  try {
    deepStrictEqual(actual, expected);
  } catch (error) {
    const difference = error instanceof Error ? error.message : 'differs';
    throw new AssertionError({
      message: `${what}: ${difference}`,
      actual,
      expected,
      operator: 'deepStrictEqual',
      stackStartFn: same,
    });
  }
}

/** A value that must be there. */
export function present<Value>(value: Value | null | undefined, what: string): Value {
  check(value !== null && value !== undefined, `${what} is missing`);
  return value;
}

/** The only member of a list. */
export function only<Member>(members: readonly Member[], what: string): Member {
  same(members.length, 1, `number of ${what}`);
  return present(members[0], what);
}

/** The name of a state code, for messages. */
export function stateName(state: State): string {
  return Object.entries(STATE).find(([, code]) => code === state)?.[0] ?? `state ${state}`;
}

/** The job must stand in this state. */
export function stands(job: Job, state: State, why = ''): Job {
  const because = why === '' ? '' : `, ${why}`;
  same(stateName(job.state), stateName(state), `state of job ${job.id}${because}`);
  return job;
}

/** The command must have taken effect now, and not before. */
export function accepted(verdict: Verdict, what: string): Job {
  check(verdict.ok, `${what} must be accepted, and was refused: ${verdict.ok ? '' : verdict.refused}`);
  same(verdict.duplicate, false, `${what}: duplicate`);
  return verdict.job;
}

/** The command must be known as one that took effect before. */
export function duplicate(verdict: Verdict, what: string): Job {
  check(verdict.ok, `${what} must be a duplicate, and was refused: ${verdict.ok ? '' : verdict.refused}`);
  same(verdict.duplicate, true, `${what}: duplicate`);
  return verdict.job;
}

/** The command must be refused for this reason; the job in the answer, null only where there is none. */
export function refused(
  verdict: Verdict | RedriveVerdict | Transacted<unknown>,
  refusal: Refusal | 'capacity_exceeded',
  what: string,
): Job | null {
  check(!verdict.ok, `${what} must be refused with ${refusal}, and was accepted`);
  same(verdict.refused, refusal, `${what}: refusal`);
  same(verdict.job === null, refusal === 'unknown_job', `${what}: no job in the answer`);
  return verdict.job;
}

/** The call must reject with an error of this stable code; the error, for further looks. */
export async function rejects(call: () => Promise<unknown>, code: string, what: string): Promise<Error> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    check(error instanceof Error, `${what} must throw an Error`);
    same(codeOf(error), code, `${what}: code of the error "${error.message}"`);
    return error;
  }
  throw new AssertionError({ message: `${what} must throw ${code}, and answered ${JSON.stringify(answer)}` });
}

/** The stable code of an error, null when it has none. */
export function codeOf(error: unknown): string | null {
  const hasCode = typeof error === 'object' && error !== null && 'code' in error;
  return hasCode && typeof error.code === 'string' ? error.code : null;
}
