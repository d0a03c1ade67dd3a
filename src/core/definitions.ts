/** The definition ledger's rule: a revision's schema never changes silently once a store has seen it. */

/** What a store keeps of a definition, for ever: it only grows. */
export interface DefinitionRecord {
  readonly kind: string;
  readonly revision: number;
  /** Digest of the payload schema as lower-case hex, null where it has no comparable form. */
  readonly schemaDigest: string | null;
  /** How the digest was made (rules and vendor), so that only like is compared with like. */
  readonly normalisation: string;
}

/** `changed` refuses the worker; `incomparable` warns; `new` is recorded; `same` says nothing. */
export type DefinitionStanding = 'new' | 'same' | 'changed' | 'incomparable';

/**
 * Where a definition stands against those recorded of its kind and revision: the same as one of them, changed under the
 * same normalisation, or not to be compared with any.
 */
export function compareDefinition(
  recorded: readonly DefinitionRecord[],
  candidate: DefinitionRecord,
): DefinitionStanding {
  const alike = recorded.filter((one) => one.kind === candidate.kind && one.revision === candidate.revision);
  if (alike.length === 0) return 'new';
  const comparable = alike.filter(
    (one) => one.normalisation === candidate.normalisation && one.schemaDigest !== null,
  );
  if (candidate.schemaDigest === null || comparable.length === 0) return 'incomparable';
  return comparable.some((one) => one.schemaDigest === candidate.schemaDigest) ? 'same' : 'changed';
}
