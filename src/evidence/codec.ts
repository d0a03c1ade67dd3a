/** Entries, the canonical bytes of a fact: one fact has one encoding, and bytes that no fact encodes to are refused. */
import {
  type BegunFact,
  type CancelFact,
  type ClaimedFact,
  type ClockCorrectedFact,
  DECIDED,
  DECIDED_BY,
  type EffectCommittedFact,
  type Fact,
  type LapsedFact,
  type PromotedFact,
  type ReconciledFact,
  type RetryDecidedFact,
  type SettledFact,
  type StepBegunFact,
  type StepDoneFact,
  type StepVerdict,
  type TestimonyFact,
} from '../core/facts.ts';
import { CAUSES, OUTCOMES } from '../core/job.ts';
import { limits } from '../core/limits.ts';
import type { Problem } from '../core/request.ts';
import type { State } from '../core/states.ts';
import { EvidenceError } from './errors.ts';
import {
  coded,
  constant,
  digest,
  type Fields,
  flag,
  type Layout,
  list,
  name,
  optional,
  readFields,
  tick,
  WireReader,
  WireWriter,
  whole,
  writeFields,
} from './wire.ts';

/** State codes as stored. RETRYABLE_FAILURE (5) is folded away before anything is recorded. */
export const STORED_STATES: readonly (State | null)[] = [0, 1, 2, 3, 4, null, 6, 7, 8, 9];

const grantedToken = whole(8, 1, limits.tokenMax);
const worker = name(limits.workerBytesMax);
const actor = name(limits.actorBytesMax);
const effectKey = name(limits.effectKeyBytesMax);
const cause = coded(CAUSES);
const outcome = coded(OUTCOMES);

const recorded = { tick, expiresAt: optional(tick), to: coded(STORED_STATES) };

const stepVerdict: Layout<StepVerdict> = { key: effectKey, tookPlace: flag, result: optional(digest) };

type FieldsOf<Kind extends Fact> = Layout<Omit<Kind, 'type'>>;

const claimed: FieldsOf<ClaimedFact> = {
  ...recorded,
  worker,
  token: grantedToken,
  delivery: whole(4, 1, limits.maxAttemptsMax + limits.deliveriesSpare),
  idempotent: flag,
};
const begun: FieldsOf<BegunFact> = {
  ...recorded,
  worker,
  token: grantedToken,
  attempt: whole(2, 1, limits.maxAttemptsMax),
};
const effectCommitted: FieldsOf<EffectCommittedFact> = {
  ...recorded,
  worker,
  token: grantedToken,
  key: effectKey,
  descriptor: digest,
  result: digest,
};
const stepBegun: FieldsOf<StepBegunFact> = {
  ...recorded,
  worker,
  token: grantedToken,
  key: effectKey,
  descriptor: digest,
  idempotent: flag,
};
const stepDone: FieldsOf<StepDoneFact> = {
  ...recorded,
  worker,
  token: grantedToken,
  key: effectKey,
  result: digest,
};
const settled: FieldsOf<SettledFact> = {
  ...recorded,
  worker,
  token: grantedToken,
  outcome,
  digest,
  delayMs: optional(whole(8, 0, limits.backoffMsMax)),
  jitterMs: whole(8, 0, limits.jitterMsMax),
  until: optional(tick),
  neverCalled: flag,
  byUpgrade: flag,
  cause,
  startAt: optional(tick),
};
const retryDecided: FieldsOf<RetryDecidedFact> = {
  ...recorded,
  token: grantedToken,
  cause,
  startAt: optional(tick),
};
const lapsed: FieldsOf<LapsedFact> = {
  ...recorded,
  // A job may pass its deadline before anybody ever claimed it.
  token: whole(8, 0, limits.tokenMax),
  by: coded(['deadline', 'lease']),
  at: tick,
  cause,
};
const cancel: FieldsOf<CancelFact> = { ...recorded, actor, reason: optional(digest) };
const reconciled: FieldsOf<ReconciledFact> = {
  ...recorded,
  token: grantedToken,
  decision: coded(DECIDED),
  by: coded(DECIDED_BY),
  actor,
  reason: optional(digest),
  steps: list(limits.openStepsMax, stepVerdict),
  cause,
  startAt: optional(tick),
};
const promoted: FieldsOf<PromotedFact> = { ...recorded, actor, reason: optional(digest) };
const testimony: FieldsOf<TestimonyFact> = { ...recorded, worker, token: grantedToken, outcome, digest };
const clockCorrected: FieldsOf<ClockCorrectedFact> = { ...recorded, from: tick, startAt: tick };

interface Format {
  readonly type: Fact['type'];
  readonly tag: number;
  /** The tag first, as the encoding of the type. */
  readonly fields: Fields;
}

/** The layout of each type under its tag; tag 0 is never used, so that zeroed bytes are never an entry. */
const LAYOUTS: {
  readonly [Type in Fact['type']]: [tag: number, layout: FieldsOf<Extract<Fact, { type: Type }>>];
} = {
  claimed: [1, claimed],
  begun: [2, begun],
  effect_committed: [3, effectCommitted],
  step_begun: [4, stepBegun],
  step_done: [5, stepDone],
  settled: [6, settled],
  retry_decided: [7, retryDecided],
  lapsed: [8, lapsed],
  cancel: [9, cancel],
  reconciled: [10, reconciled],
  promoted: [11, promoted],
  testimony: [12, testimony],
  clock_corrected: [13, clockCorrected],
};

const FORMATS: readonly Format[] = Object.entries(LAYOUTS).map(([type, [tag, layout]]) => ({
  type: type as Fact['type'],
  tag,
  fields: [['type', constant(tag, type)], ...Object.entries(layout)],
}));
const BY_TYPE: ReadonlyMap<unknown, Format> = new Map(FORMATS.map((format) => [format.type, format]));
const BY_TAG: ReadonlyMap<number, Format> = new Map(FORMATS.map((format) => [format.tag, format]));

/** The types of facts in the order of their tags, which begin with 1. */
export const FACT_TYPES: readonly Fact['type'][] = FORMATS.map(({ type }) => type);

/** An entry, or the first field of the fact that has no encoding. */
export type Encoded = { readonly ok: true; readonly entry: Uint8Array } | ({ readonly ok: false } & Problem);

/** A fact, or the first field of the entry that cannot be read. */
export type Decoded = { readonly ok: true; readonly fact: Fact } | ({ readonly ok: false } & Problem);

/** The entry of a fact, or why it has none; for facts of unknown origin. */
export function tryEncodeEntry(fact: Fact): Encoded {
  const format = BY_TYPE.get(fact.type);
  if (format === undefined)
    return { ok: false, field: 'type', problem: `must be one of ${FACT_TYPES.join(', ')}` };
  const writer = new WireWriter();
  writeFields(writer, format.fields, fact);
  return writer.problem === null ? { ok: true, entry: writer.finish() } : { ok: false, ...writer.problem };
}

/**
 * The canonical bytes of a fact. Throws an EvidenceError (`fact_out_of_domain`) that names the first field outside its
 * type or bound: what cannot be recorded exactly must not be decided.
 *
 * @example
 * ```ts
 * const entry = encodeEntry(decision.facts[0]);
 * ```
 */
export function encodeEntry(fact: Fact): Uint8Array {
  const encoded = tryEncodeEntry(fact);
  if (!encoded.ok) throw new EvidenceError('fact_out_of_domain', encoded.field, encoded.problem);
  return encoded.entry;
}

/**
 * Reads one entry, whatever the bytes are; never throws. At most `limits.entryBytesMax` bytes are looked at, and every
 * length and count is checked before it is used.
 *
 * @example
 * ```ts
 * const decoded = decodeEntry(bytes);
 * if (!decoded.ok) console.warn(`${decoded.field} ${decoded.problem}`);
 * ```
 */
export function decodeEntry(bytes: Uint8Array): Decoded {
  if (bytes.byteLength > limits.entryBytesMax) {
    const problem = `must not be longer than ${limits.entryBytesMax} bytes, and has ${bytes.byteLength}`;
    return { ok: false, field: 'entry', problem };
  }
  const tag = bytes[0];
  const format = tag === undefined ? undefined : BY_TAG.get(tag);
  if (format === undefined) {
    const problem = tag === undefined ? 'is missing' : `${tag} is of no type of fact`;
    return { ok: false, field: 'tag', problem };
  }
  const reader = new WireReader(bytes);
  const fact = readFields(reader, '', format.fields);
  if (reader.remaining > 0) reader.refuse('entry', `has ${reader.remaining} bytes behind its last field`);
  if (reader.problem !== null) return { ok: false, ...reader.problem };
  return { ok: true, fact: fact as unknown as Fact };
}
