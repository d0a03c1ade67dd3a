/** The chain of custody of one job: changing, dropping or swapping any of its closed entries changes the root. */
import { canonicalJson } from '../core/canonical.ts';
import type { BegunFact, ClaimedFact, Fact } from '../core/facts.ts';
import type { Submission } from '../core/job.ts';
import { decodeEntry, encodeEntry } from './codec.ts';
import { EvidenceError } from './errors.ts';
import { sha256Hex } from './hash.ts';

/** Domains keep a digest made for one purpose from ever standing for another. */
export const SUBMISSION_DOMAIN = 'custody.submission.v1\0';
export const ENTRY_DOMAIN = 'custody.ledger.entry.v1\0';

const SUBMISSION_DEPTH_MAX = 8;
/** Above what the bounds of every field allow, with each character escaped. */
const SUBMISSION_BYTES_MAX = 1024 * 1024;

/** What claim and begin state, before the job's next entry closes it: a claim, a begin, or a claim and its begin. */
export type OpenDelivery = readonly (ClaimedFact | BegunFact)[];

/**
 * The history of one job. `root` (64 hexadecimal digits) covers the submission and the closed `entries`, and not the
 * `open` delivery, whose facts live in columns of the job's row until the next entry closes them. A chain is a value:
 * functions return new ones, and the bytes of an entry are never written again.
 */
export interface Chain {
  readonly root: string;
  readonly entries: readonly Uint8Array[];
  readonly open: OpenDelivery;
}

/** The canonical JSON of a submission, from which its chain begins. Throws `submission_not_canonical`. */
export function submissionText(submission: Submission): string {
  const canonical = canonicalJson(submission, {
    maxDepth: SUBMISSION_DEPTH_MAX,
    maxBytes: SUBMISSION_BYTES_MAX,
  });
  if (canonical.ok) return canonical.text;
  throw new EvidenceError(
    'submission_not_canonical',
    `submission${canonical.path.slice(1)}`,
    canonical.problem,
  );
}

/** The root of a chain without entries. Throws `submission_not_canonical`. */
export function genesisRoot(submission: Submission): string {
  return sha256Hex(SUBMISSION_DOMAIN + submissionText(submission));
}

/** The root after one more entry; `root` is the 64 hexadecimal digits before it. */
export function nextRoot(root: string, entry: Uint8Array): string {
  return sha256Hex(Buffer.concat([ENTRY_DOMAIN_BYTES, Buffer.from(root, 'hex'), entry]));
}

const ENTRY_DOMAIN_BYTES = Buffer.from(ENTRY_DOMAIN);

/**
 * The chain of a job that was just admitted. Throws `submission_not_canonical`.
 *
 * @example
 * ```ts
 * const chain = appendFacts(newChain(submission), decision.facts);
 * ```
 */
export function newChain(submission: Submission): Chain {
  return { root: genesisRoot(submission), entries: [], open: [] };
}

/**
 * The chain with the facts of one decision behind it, in their order. A claim and the begin that follows it stay open;
 * the next entry of any other type, or a further claim, closes them first. Throws `fact_out_of_domain` and then nothing
 * was appended.
 *
 * Costs one hash for each entry that closes, and a copy of the array when one does. A store that keeps closed entries
 * elsewhere may pass a chain with no entries: the root goes on, and those that come back are the new ones.
 *
 * @example
 * ```ts
 * const { root, entries, open } = appendFacts({ root: row.root, entries: [], open }, decision.facts);
 * ```
 */
export function appendFacts(chain: Chain, facts: readonly Fact[]): Chain {
  const closing: Uint8Array[] = [];
  let open = chain.open;
  for (const fact of facts) {
    const entry = encodeEntry(fact);
    if (fact.type === 'begun' && open.every((held) => held.type === 'claimed')) {
      open = [...open, fact];
      continue;
    }
    closing.push(...open.map(encodeEntry));
    const opens = fact.type === 'claimed' || fact.type === 'begun';
    open = opens ? [fact] : [];
    if (!opens) closing.push(entry);
  }
  if (closing.length === 0) return { ...chain, open };
  return { root: closing.reduce(nextRoot, chain.root), entries: [...chain.entries, ...closing], open };
}

/** The chain with its open delivery closed: what the root would be if an entry followed now. */
export function closedAfter(chain: Chain): Chain {
  if (chain.open.length === 0) return chain;
  const closing = chain.open.map(encodeEntry);
  return { root: closing.reduce(nextRoot, chain.root), entries: [...chain.entries, ...closing], open: [] };
}

/** All entries of the job, the open delivery last. Every reader of evidence begins here. */
export function entriesOf(chain: Chain): readonly Uint8Array[] {
  return closedAfter(chain).entries;
}

/** All facts of the job in order. Throws `entry_undecodable` for a closed entry that is none, naming its index. */
export function factsOf(chain: Chain): readonly Fact[] {
  const closed = chain.entries.map((entry, index) => {
    const decoded = decodeEntry(entry);
    if (decoded.ok) return decoded.fact;
    throw new EvidenceError('entry_undecodable', `entries[${index}].${decoded.field}`, decoded.problem);
  });
  return [...closed, ...chain.open];
}
