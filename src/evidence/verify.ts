/** Verifies one job offline: a stored state, payload or history that was changed anywhere is found, and nothing is granted. */
import { descriptorText } from '../core/admission.ts';
import type { Fact } from '../core/facts.ts';
import type { Job } from '../core/job.ts';
import { type Chain, genesisRoot, nextRoot, type OpenDelivery } from './chain.ts';
import { decodeEntry, tryEncodeEntry } from './codec.ts';
import { sha256Hex } from './hash.ts';
import { type ReplayFault, replay } from './replay.ts';

/** What can be wrong with the evidence of a job, beside the faults of a history. */
export const VERIFY_FAULTS = [
  'payload_mismatch',
  'descriptor_mismatch',
  'root_mismatch',
  'undecodable',
  'open_delivery',
  'state_mismatch',
] as const;

/** One thing wrong with the evidence of a job. */
export interface Fault {
  readonly code: ReplayFault | (typeof VERIFY_FAULTS)[number];
  /** Index of the entry at fault, the open delivery counted behind the closed ones; null for what is no entry. */
  readonly at: number | null;
  /** What is wrong, naming the field. */
  readonly detail: string;
}

/** What there is of one job: its row, its payload as canonical JSON text, and its chain. */
export interface Evidence {
  readonly job: Job;
  readonly payload: string;
  readonly chain: Chain;
}

/** What verifying came to. `ok` means no faults. */
export interface Verification {
  readonly ok: boolean;
  /** How many entries there are, the open delivery included. */
  readonly entries: number;
  /** The root recomputed over the submission and the closed entries. */
  readonly root: string;
  readonly faults: readonly Fault[];
}

/**
 * Verifies the payload against its digest and the descriptor, every link of the chain against its root, every entry, the
 * whole history by replay, and every field of the stored job against the replayed one. Only `lease.expiresAt` and
 * `lease.lengthMs` are not compared: heartbeats move them and leave no entry. A submission that JSON cannot hold throws
 * `submission_not_canonical`; read a job of unknown origin with readJob first.
 *
 * @example
 * ```ts
 * const { ok, faults } = verifyJob({ job, payload, chain });
 * for (const fault of faults) console.error(fault.code, fault.at, fault.detail);
 * ```
 */
export function verifyJob({ job, payload, chain }: Evidence): Verification {
  const { submission } = job;
  const faults: Fault[] = [];
  const found = (code: Fault['code'], at: number | null, detail: string): void => {
    faults.push({ code, at, detail });
  };
  if (sha256Hex(payload) !== submission.payloadDigest) {
    found('payload_mismatch', null, 'the payload is not the one whose digest is submission.payloadDigest');
  }
  if (sha256Hex(descriptorText({ ...submission, payload })) !== submission.descriptor) {
    found(
      'descriptor_mismatch',
      null,
      'submission.descriptor is not that of kind, queue, lane, payload, recurrence',
    );
  }
  const root = chain.entries.reduce(nextRoot, genesisRoot(submission));
  if (root !== chain.root)
    found('root_mismatch', null, `root is ${chain.root}, and the entries lead to ${root}`);
  const facts = readFacts(chain, found);
  if (facts !== null) verifyState(job, facts, found);
  return { ok: faults.length === 0, entries: chain.entries.length + chain.open.length, root, faults };
}

type Found = (code: Fault['code'], at: number | null, detail: string) => void;

/** All facts, or null when an entry is not one: a history with a gap is not replayed. */
function readFacts(chain: Chain, found: Found): readonly Fact[] | null {
  const facts: Fact[] = [];
  let whole = true;
  for (const [at, entry] of chain.entries.entries()) {
    const decoded = decodeEntry(entry);
    if (decoded.ok) {
      facts.push(decoded.fact);
      continue;
    }
    whole = false;
    found('undecodable', at, `${decoded.field} ${decoded.problem}`);
  }
  if (!isOpenDelivery(chain.open)) {
    whole = false;
    found(
      'open_delivery',
      chain.entries.length,
      'an open delivery is a claim, a begin, or a claim and its begin',
    );
  }
  for (const [index, fact] of chain.open.entries()) {
    const encoded = tryEncodeEntry(fact);
    if (encoded.ok) continue;
    whole = false;
    found('undecodable', chain.entries.length + index, `${encoded.field} ${encoded.problem}`);
  }
  return whole ? [...facts, ...chain.open] : null;
}

const OPEN_DELIVERIES: ReadonlySet<string> = new Set(['', 'claimed', 'begun', 'claimed,begun']);

function isOpenDelivery(open: OpenDelivery): boolean {
  return OPEN_DELIVERIES.has(open.map((fact) => fact.type).join(','));
}

function verifyState(job: Job, facts: readonly Fact[], found: Found): void {
  const replayed = replay(job.id, job.submission, facts);
  if (!replayed.ok) {
    found(replayed.fault, replayed.at, replayed.detail);
    return;
  }
  const stored = comparable(job);
  for (const [field, value] of Object.entries(comparable(replayed.job))) {
    const expected = JSON.stringify(value);
    const claimed = JSON.stringify(stored[field]);
    if (claimed !== expected)
      found('state_mismatch', null, `${field} is ${claimed}, and replay gives ${expected}`);
  }
}

/** The fields of a job that its history determines, in one order. */
function comparable(job: Job): Readonly<Record<string, unknown>> {
  const { submission: _submission, lease, answered, testified, openSteps, ...rest } = job;
  const report = (said: Job['answered']): unknown => said && [said.token, said.outcome, said.digest];
  return {
    ...rest,
    lease: lease && { token: lease.token, worker: lease.worker },
    answered: report(answered),
    testified: report(testified),
    openSteps: openSteps.map((step) => [step.key, step.idempotent]),
  };
}
