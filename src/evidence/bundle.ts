/** Bundles, one job's evidence as one JSON text: it verifies without any store, and a bundle changed anywhere does not. */
import { canonicalJson } from '../core/canonical.ts';
import type { Fact } from '../core/facts.ts';
import type { Job } from '../core/job.ts';
import { decodeEntry, encodeEntry } from './codec.ts';
import { EvidenceError } from './errors.ts';
import { isDigest, sha256Hex } from './hash.ts';
import {
  BUNDLE_FORMAT,
  BUNDLE_JSON_LIMITS,
  type BundleContents,
  bundleDigest,
  type ReportedLate,
  readBundle,
  readBundleText,
} from './read-bundle.ts';
import { type Fault, verifyJob } from './verify.ts';

/** A bundle as plain JSON. Its keys are in order at every depth, so `JSON.stringify` gives its one canonical text. */
export interface Bundle {
  /** SHA-256 over everything else: finds damage, proves no author. */
  readonly digest: string;
  /** Closed entries in base64. */
  readonly entries: readonly string[];
  readonly format: typeof BUNDLE_FORMAT;
  readonly job: Job;
  /** Entries of the open delivery in base64. */
  readonly open: readonly string[];
  readonly payload: string;
  readonly root: string;
  readonly testimony: readonly ReportedLate[];
  readonly texts: Readonly<Record<string, string>>;
}

/** What the digest takes in the text of a bundle, with its name and a comma. */
const DIGEST_MEMBER = '"digest":"",'.length + 64;
const REST_BYTES_MAX = BUNDLE_JSON_LIMITS.maxBytes - DIGEST_MEMBER;

/** What can be wrong with a bundle beside the faults of the job in it. */
export const BUNDLE_FAULTS = ['bundle_malformed', 'text_mismatch', 'testimony_mismatch'] as const;

/** One thing wrong with a bundle. */
export interface BundleFault extends Omit<Fault, 'code'> {
  readonly code: Fault['code'] | (typeof BUNDLE_FAULTS)[number];
}

/** What verifying a bundle came to. `ok` means no faults. */
export interface BundleVerification {
  readonly ok: boolean;
  /** How many entries there are, the open delivery included; 0 when the bundle cannot be read. */
  readonly entries: number;
  /** The root recomputed over the submission and the closed entries; null when the bundle cannot be read. */
  readonly root: string | null;
  readonly faults: readonly BundleFault[];
  /** What the bundle holds, also when it has faults; null when it cannot be read. */
  readonly contents: BundleContents | null;
}

/**
 * The bundle of one job. A job with faults can be bundled: the bundle then shows them. Texts that no entry and no
 * testimony names are left out, since nothing proves them. Throws `bundle_out_of_bounds` when the bundle would be larger
 * than `limits.bundleBytesMax` or hold what JSON cannot, and `fact_out_of_domain` for an open delivery that has no encoding.
 *
 * @example
 * ```ts
 * const evidence = await store.evidence(id);
 * if (evidence) await writeFile('job.json', JSON.stringify(makeBundle(evidence)));
 * ```
 */
export function makeBundle({ job, payload, chain, texts, testimony }: BundleContents): Bundle {
  const named = namedDigests([...readableFacts(chain.entries), ...chain.open], testimony);
  const rest: Omit<Bundle, 'digest'> = {
    entries: chain.entries.map(toBase64),
    format: BUNDLE_FORMAT,
    job,
    open: chain.open.map((fact) => toBase64(encodeEntry(fact))),
    payload,
    root: chain.root,
    testimony: testimony.map(({ tick, worker, token, outcome, digest }) => ({
      tick,
      worker,
      token,
      outcome,
      digest,
    })),
    texts: Object.fromEntries(Object.entries(texts).filter(([digest]) => named.has(digest))),
  };
  const canonical = canonicalJson(rest, { ...BUNDLE_JSON_LIMITS, maxBytes: REST_BYTES_MAX });
  if (!canonical.ok) {
    throw new EvidenceError('bundle_out_of_bounds', `bundle${canonical.path.slice(1)}`, canonical.problem);
  }
  const ordered = JSON.parse(canonical.text) as Omit<Bundle, 'digest'>;
  return { digest: bundleDigest(canonical.text), ...ordered };
}

/**
 * Verifies a bundle of any origin, as text or as a parsed value; never throws. The text must be its canonical JSON, so
 * that no two readers can see different bundles in it. Beside what verifyJob looks at: the digest over the whole, that every text
 * is the one a digest in the evidence names, and that testimony is about tokens the job had. Inert: it grants nothing.
 *
 * @example
 * ```ts
 * const { ok, faults, contents } = verifyBundle(await readFile('job.json', 'utf8'));
 * ```
 */
export function verifyBundle(input: unknown): BundleVerification {
  const read = typeof input === 'string' ? readBundleText(input) : readBundle(input);
  if (!read.ok) {
    const detail = `${read.problem.field} ${read.problem.problem}`;
    const faults: BundleFault[] = [{ code: 'bundle_malformed', at: null, detail }];
    return { ok: false, entries: 0, root: null, faults, contents: null };
  }
  const contents = read.value;
  const { entries, root, faults: jobFaults } = verifyJob(contents);
  const faults = [...jobFaults, ...textFaults(contents), ...testimonyFaults(contents)];
  return { ok: faults.length === 0, entries, root, faults, contents };
}

function textFaults({ chain, texts, testimony }: BundleContents): readonly BundleFault[] {
  const named = namedDigests([...readableFacts(chain.entries), ...chain.open], testimony);
  const fault = (detail: string): BundleFault[] => [{ code: 'text_mismatch', at: null, detail }];
  return Object.entries(texts).flatMap(([digest, text]) => {
    if (sha256Hex(text) !== digest) return fault(`texts.${digest} is not the text with this digest`);
    return named.has(digest) ? [] : fault(`texts.${digest} is named by no entry and no testimony`);
  });
}

function testimonyFaults({ job, testimony }: BundleContents): readonly BundleFault[] {
  return testimony.flatMap(({ token }, index): BundleFault[] => {
    const detail = `testimony[${index}].token is ${token}, and the last token of the job is ${job.token}`;
    return token <= job.token ? [] : [{ code: 'testimony_mismatch', at: null, detail }];
  });
}

/** Facts of the entries that can be read; what cannot is the verification's to report. */
function readableFacts(entries: readonly Uint8Array[]): readonly Fact[] {
  return entries.flatMap((entry) => {
    const decoded = decodeEntry(entry);
    return decoded.ok ? [decoded.fact] : [];
  });
}

/** Every digest in the evidence. A name that looks like one adds nothing: a text with that very digest is not to be found. */
function namedDigests(facts: readonly Fact[], testimony: readonly ReportedLate[]): ReadonlySet<unknown> {
  const verdicts = facts.flatMap((fact) => (fact.type === 'reconciled' ? fact.steps : []));
  const records: readonly object[] = [...facts, ...verdicts, ...testimony];
  return new Set(records.flatMap((record) => Object.values(record).filter(isDigest)));
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
