/** The one error of evidence: what was given cannot be recorded exactly, so nothing at all was recorded. */

/** Codes with what each means and the safe next step. */
export const EVIDENCE_ERROR_TABLE = [
  {
    code: 'fact_out_of_domain',
    meaning: 'A fact has a field outside its type or bound, so it has no encoding.',
    next: 'Check the command the fact came from: names, digests and lengths are checked before deciding.',
  },
  {
    code: 'entry_undecodable',
    meaning: 'A stored entry is not the encoding of a fact.',
    next: 'Verify the job: its stored history was damaged or written by something else.',
  },
  {
    code: 'submission_not_canonical',
    meaning: 'A submission holds a value that JSON cannot hold exactly.',
    next: 'Read the submission with readSubmission first; it names the field.',
  },
  {
    code: 'ledger_out_of_bounds',
    meaning: 'An entry is empty or longer than an entry may be.',
    next: 'Pack only what encodeEntry returned.',
  },
  {
    code: 'bundle_out_of_bounds',
    meaning: 'A bundle would hold a value that JSON cannot hold exactly, or would be too large.',
    next: 'Leave out texts, or verify the job where it is stored.',
  },
] as const;

export type EvidenceErrorCode = (typeof EVIDENCE_ERROR_TABLE)[number]['code'];

/**
 * Thrown when a value cannot be turned into evidence. `field` is the path of the culprit, `problem` the rule it breaks,
 * `code` is stable and `next` the safe next step.
 *
 * @example
 * ```ts
 * try {
 *   encodeEntry(fact);
 * } catch (error) {
 *   if (error instanceof EvidenceError) console.error(error.code, error.field, error.next);
 * }
 * ```
 */
export class EvidenceError extends Error {
  override readonly name = 'EvidenceError';
  readonly code: EvidenceErrorCode;
  readonly field: string;
  readonly problem: string;
  readonly next: string;

  constructor(code: EvidenceErrorCode, field: string, problem: string) {
    super(`${field} ${problem}`);
    this.code = code;
    this.field = field;
    this.problem = problem;
    this.next = NEXT[code];
  }
}

const NEXT = Object.fromEntries(EVIDENCE_ERROR_TABLE.map(({ code, next }) => [code, next])) as Readonly<
  Record<EvidenceErrorCode, string>
>;
