/** Every bound of Custody in one place: a value past its bound is refused by name, never clipped or wrapped. */

/** All bounds. `Bytes` counts UTF-8 bytes, `Ms` milliseconds; bounds are inclusive. */
export const limits = {
  tickMax: 9_007_199_254_740_991,
  tokenMax: 9_007_199_254_740_991,
  idMax: 9_007_199_254_740_991,

  kindBytesMax: 128,
  queueBytesMax: 128,
  orderingKeyBytesMax: 256,
  idempotencyKeyBytesMax: 256,
  requestIdBytesMax: 128,
  lineageBytesMax: 64,
  workerBytesMax: 128,
  actorBytesMax: 256,
  effectKeyBytesMax: 256,
  /** 4 KiB */
  reasonBytesMax: 4_096,

  /** 1 MiB */
  payloadBytesMax: 1_048_576,
  payloadDepthMax: 64,
  /** 1 MiB */
  resultBytesMax: 1_048_576,
  resultDepthMax: 64,

  priorityMin: -1000,
  priorityMax: 1000,
  /** Internal jobs (reconcile, compensate) go before everything a user may ask for. */
  priorityInternal: 1001,
  /** A granted token divisible by this takes the oldest due job whatever its priority, so nothing starves. */
  oldestFirstEvery: 16,

  revisionMin: 1,
  revisionMax: 255,
  maxAttemptsMin: 1,
  maxAttemptsMax: 10_000,
  maxAttemptsDefault: 5,
  /** Deliveries a job may use beyond its attempts: bounds snoozing, interruption and crash loops. */
  deliveriesSpare: 1_000,
  internalAttemptsMax: 20,

  backoffBaseMsDefault: 1_000,
  backoffMaxMsDefault: 300_000,
  /** 366 days */
  backoffMsMax: 31_622_400_000,
  /** 366 days */
  jitterMsMax: 31_622_400_000,

  leaseMsMin: 1,
  leaseMsDefault: 30_000,
  /** 1 day */
  leaseMsMax: 86_400_000,
  /** 366 days */
  reconcileAfterMsMax: 31_622_400_000,
  clockToleranceMs: 5_000,
  workerAliveMs: 90_000,

  /** 100 × 366 days */
  recurrenceIntervalMsMax: 3_162_240_000_000,
  maxOccurrencesMax: 1_000_000_000,
  maxCatchUpMax: 1_000_000_000,

  /** Steps begun and not done at one time in one job. */
  openStepsMax: 256,
  /** Late reports kept of one job, and how many of them may be ones that cannot decide anything. */
  testimonyPerJobMax: 32,
  testimonyIndefiniteMax: 16,

  enqueueBatchMax: 10_000,
  claimBatchMax: 500,
  holdersBatchMax: 500,
  lapsePageMax: 500,
  findPageMax: 1_000,
  findPageDefault: 100,
  prunePageMax: 5_000,
  definitionsMax: 1_000,
  maxUnresolvedMax: 1_000_000_000,

  /** 128 KiB */
  entryBytesMax: 131_072,
  /** 4 KiB */
  ledgerInlineMax: 4_096,
  /** 256 MiB */
  bundleBytesMax: 268_435_456,
  bundleEntriesMax: 10_000_000,

  /** 100 × 366 days */
  keepKeysForMsMax: 3_162_240_000_000,
  /** 30 days */
  keepKeysForMsDefault: 2_592_000_000,
  /** 7 days */
  keepSucceededMsDefault: 604_800_000,
  /** 7 days */
  keepCancelledMsDefault: 604_800_000,
  /** Added to ids and tokens when a backup, or another store's jobs, are restored: the source may have gone on. */
  restoreGap: 4_294_967_296,
} as const;

type Limits = { readonly [Name in keyof typeof limits]: number };

/**
 * The relations the bounds must keep, by name; a relation that does not hold is a defect of this file.
 *
 * @example
 * ```ts
 * brokenLimitRelations(limits); // []
 * ```
 */
export function brokenLimitRelations(bounds: Limits): string[] {
  const reconciledEntryBytesMax =
    64 + bounds.actorBytesMax + bounds.openStepsMax * (bounds.effectKeyBytesMax + 40);
  const relations: Record<string, boolean> = {
    'internal jobs outrank every user priority': bounds.priorityInternal > bounds.priorityMax,
    'the default priority 0 is allowed': bounds.priorityMin <= 0 && bounds.priorityMax >= 0,
    'revisions fit one byte': bounds.revisionMin >= 1 && bounds.revisionMax <= 255,
    'the default attempts are allowed':
      bounds.maxAttemptsMin <= bounds.maxAttemptsDefault &&
      bounds.maxAttemptsDefault <= bounds.maxAttemptsMax,
    'internal attempts are allowed': bounds.internalAttemptsMax <= bounds.maxAttemptsMax,
    'deliveries fit four bytes': bounds.maxAttemptsMax + bounds.deliveriesSpare < 2 ** 32,
    'the default backoff is allowed and ordered':
      bounds.backoffBaseMsDefault <= bounds.backoffMaxMsDefault &&
      bounds.backoffMaxMsDefault <= bounds.backoffMsMax,
    'the default lease is allowed':
      bounds.leaseMsMin <= bounds.leaseMsDefault && bounds.leaseMsDefault <= bounds.leaseMsMax,
    'a clock is distrusted sooner than a default lease ends': bounds.clockToleranceMs < bounds.leaseMsDefault,
    'a worker is called dead only after its default lease ended':
      bounds.workerAliveMs > bounds.leaseMsDefault,
    'a decision about every open step fits one entry': reconciledEntryBytesMax <= bounds.entryBytesMax,
    'an entry fits a bundle': bounds.entryBytesMax < bounds.bundleBytesMax,
    'a payload fits a bundle even when every byte is escaped':
      bounds.payloadBytesMax * 6 < bounds.bundleBytesMax,
    'the inline ledger holds at least one ordinary entry':
      bounds.ledgerInlineMax >= 128 + bounds.workerBytesMax + bounds.effectKeyBytesMax,
    'a restore leaves room for ids and tokens': bounds.restoreGap * 1_000 < bounds.tokenMax,
    'noise leaves room for the word that could decide':
      bounds.testimonyIndefiniteMax < bounds.testimonyPerJobMax,
    'the default time to keep keys is allowed': bounds.keepKeysForMsDefault <= bounds.keepKeysForMsMax,
    'a default page is allowed': bounds.findPageDefault <= bounds.findPageMax,
    'keys outlive the default retention of what succeeded':
      bounds.keepKeysForMsDefault >= bounds.keepSucceededMsDefault,
  };
  return Object.entries(relations)
    .filter(([, holds]) => !holds)
    .map(([name]) => name);
}
