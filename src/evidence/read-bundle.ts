/** Reads a bundle of hostile origin: sizes are checked before anything is decoded, and only one text means one bundle. */
import { canonicalJson, utf8Length } from '../core/canonical.ts';
import { type Job, OUTCOMES, type Outcome } from '../core/job.ts';
import { limits } from '../core/limits.ts';
import { plainFields } from '../core/request.ts';
import type { Chain, OpenDelivery } from './chain.ts';
import { decodeEntry } from './codec.ts';
import { isDigest, sha256Hex } from './hash.ts';
import { type PlainReader, type Read, readRecord } from './plain-reader.ts';
import { readJob } from './read-job.ts';

export const BUNDLE_FORMAT = 'custody-bundle-v1';
/** The domain of the digest that covers all of a bundle, also what no chain covers. */
export const BUNDLE_DOMAIN = 'custody.bundle.v1\0';

const OPEN_MAX = 2;
const ENTRY_BASE64_MAX = 4 * Math.ceil(limits.entryBytesMax / 3);

/** A report that came too late for its attempt, as kept beside the chain. */
export interface ReportedLate {
  readonly tick: number;
  readonly worker: string;
  readonly token: number;
  readonly outcome: Outcome;
  readonly digest: string;
}

/** What a bundle holds, read. */
export interface BundleContents {
  readonly job: Job;
  /** Canonical JSON text. */
  readonly payload: string;
  readonly chain: Chain;
  /** Results and reasons by their digest. */
  readonly texts: Readonly<Record<string, string>>;
  readonly testimony: readonly ReportedLate[];
}

/** The digest of a bundle from the canonical text of everything else in it. */
export function bundleDigest(restText: string): string {
  return sha256Hex(BUNDLE_DOMAIN + restText);
}

/** What must hold of a bundle's text before it is looked into. */
export const BUNDLE_JSON_LIMITS: { readonly maxDepth: number; readonly maxBytes: number } = {
  maxDepth: 8,
  maxBytes: limits.bundleBytesMax,
};

/** Reads a bundle as a value. It is read from its own canonical text, so that a proxy cannot show two faces. */
export function readBundle(value: unknown): Read<BundleContents> {
  const canonical = canonicalJson(value, BUNDLE_JSON_LIMITS);
  return canonical.ok
    ? readBundleText(canonical.text)
    : malformed(`bundle${canonical.path.slice(1)}`, canonical.problem);
}

/** Reads a bundle as text; only its canonical JSON is one, with or without a line feed behind it. */
export function readBundleText(text: string): Read<BundleContents> {
  // A code unit takes at least a byte: a text too long is refused without being looked at.
  if (text.length > limits.bundleBytesMax) {
    return malformed('bundle', `must not be larger than ${limits.bundleBytesMax} bytes`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return malformed('bundle', 'must be JSON');
  }
  const { digest, ...rest } = plainFields(value) ?? {};
  const canonical = canonicalJson(rest, BUNDLE_JSON_LIMITS);
  if (!canonical.ok) return malformed(`bundle${canonical.path.slice(1)}`, canonical.problem);
  const read = readRecord(value, 'bundle', bundleFields);
  if (!read.ok) return read;
  if (digest !== bundleDigest(canonical.text)) {
    return malformed('bundle.digest', 'is not the digest of what the bundle holds');
  }
  // `digest` sorts before every other field.
  const only = `{"digest":"${digest}",${canonical.text.slice(1)}`;
  return text === only || text === `${only}\n` ? read : malformed('bundle', NOT_CANONICAL);
}

const NOT_CANONICAL = 'must be canonical JSON: no spaces, no repeated keys, keys in order';

function malformed(field: string, problem: string): Read<never> {
  return { ok: false, problem: { field, problem } };
}

function bundleFields(reader: PlainReader): BundleContents {
  reader.digest('digest');
  reader.oneOf('format', [BUNDLE_FORMAT]);
  return {
    job: reader.nested('job', readJob),
    payload: reader.nested('payload', (value, path) => readText(value, path, limits.payloadBytesMax)),
    chain: {
      root: reader.digest('root'),
      entries: entryList(reader, 'entries', limits.bundleEntriesMax),
      open: openDelivery(reader),
    },
    texts: reader.nested('texts', readTexts),
    testimony: reader.records('testimony', limits.bundleEntriesMax, (report) => ({
      tick: report.tick('tick'),
      worker: report.name('worker', limits.workerBytesMax),
      token: report.whole('token', 1, limits.tokenMax),
      outcome: report.oneOf('outcome', OUTCOMES),
      digest: report.digest('digest'),
    })),
  };
}

function entryList(reader: PlainReader, field: string, countMax: number): readonly Uint8Array[] {
  return reader.items(field, countMax).flatMap((item, index) => {
    const entry = fromBase64(item);
    if (entry === null) reader.refuse(`${field}[${index}]`, BASE64_RULE);
    return entry ?? [];
  });
}

const BASE64_RULE = `must be canonical base64 of at most ${limits.entryBytesMax} bytes`;

function fromBase64(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || value.length > ENTRY_BASE64_MAX) return null;
  const bytes = Buffer.from(value, 'base64');
  // Decoding is lenient about letters and padding; encoding again is not.
  return bytes.toString('base64') === value ? new Uint8Array(bytes) : null;
}

function openDelivery(reader: PlainReader): OpenDelivery {
  return entryList(reader, 'open', OPEN_MAX).flatMap((entry, index): OpenDelivery => {
    const decoded = decodeEntry(entry);
    if (!decoded.ok)
      return reader.refuse(`open[${index}]`, `cannot be read: ${decoded.field} ${decoded.problem}`);
    const { fact } = decoded;
    const opens = fact.type === 'claimed' || fact.type === 'begun';
    return opens ? [fact] : reader.refuse(`open[${index}]`, 'must be a claim or a begin');
  });
}

function readTexts(value: unknown, path: string): Read<Readonly<Record<string, string>>> {
  const fields = plainFields(value);
  if (fields === null) return malformed(path, 'must be a plain object');
  const texts: Record<string, string> = {};
  for (const [digest, text] of Object.entries(fields)) {
    const field = `${path}.${digest}`;
    if (!isDigest(digest)) return malformed(field, 'must be named by 64 lower-case hexadecimal digits');
    const read = readText(text, field, limits.resultBytesMax);
    if (!read.ok) return read;
    texts[digest] = read.value;
  }
  return { ok: true, value: texts };
}

function readText(value: unknown, path: string, bytesMax: number): Read<string> {
  if (typeof value === 'string' && value.length <= bytesMax && utf8Length(value) <= bytesMax) {
    return { ok: true, value };
  }
  return malformed(path, `must be text of at most ${bytesMax} bytes`);
}
