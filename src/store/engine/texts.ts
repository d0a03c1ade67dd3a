/** Which texts lie beside a chain: those whose digest an entry states, and no others. */
import type { Fact } from '../../core/index.ts';

/** Digests of the report or the reason that a fact states. Results of effects lie with their marks instead. */
export function textDigestsOf(fact: Fact): readonly string[] {
  switch (fact.type) {
    case 'settled':
    case 'testimony':
      return [fact.digest];
    case 'cancel':
    case 'promoted':
    case 'reconciled':
      return fact.reason === null ? [] : [fact.reason];
    default:
      return [];
  }
}
