/** `custody/evidence`: what a job's history is made of and how to verify it; everything here is inert and grants nothing. */

export {
  BUNDLE_FAULTS,
  type Bundle,
  type BundleFault,
  type BundleVerification,
  makeBundle,
  verifyBundle,
} from './bundle.ts';
export {
  appendFacts,
  type Chain,
  closedAfter,
  ENTRY_DOMAIN,
  entriesOf,
  factsOf,
  genesisRoot,
  newChain,
  nextRoot,
  type OpenDelivery,
  SUBMISSION_DOMAIN,
  submissionText,
} from './chain.ts';
export { type Decoded, decodeEntry, encodeEntry, FACT_TYPES } from './codec.ts';
export { EVIDENCE_ERROR_TABLE, EvidenceError, type EvidenceErrorCode } from './errors.ts';
export { isDigest, sha256Hex } from './hash.ts';
export { packLedger, unpackLedger } from './ledger.ts';
export type { Read } from './plain-reader.ts';
export { BUNDLE_DOMAIN, type BundleContents, type ReportedLate } from './read-bundle.ts';
export { readJob } from './read-job.ts';
export { readSubmission } from './read-submission.ts';
export { type OnDecided, REPLAY_FAULTS, type Replayed, type ReplayFault, replay } from './replay.ts';
export { describe, type FormatTick, type Moment, timelineOf } from './timeline.ts';
export { type Evidence, type Fault, VERIFY_FAULTS, type Verification, verifyJob } from './verify.ts';
