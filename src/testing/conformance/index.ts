/** Every case a store must pass to be one: what is not claimed here may differ between stores. */
import { beginCases } from './begin.ts';
import { cancelCases } from './cancel.ts';
import { claimCases } from './claim.ts';
import { claimLaneCases } from './claim-lanes.ts';
import { dismissCases } from './dismiss.ts';
import { enqueueCases } from './enqueue.ts';
import { enqueueCapacityCases } from './enqueue-capacity.ts';
import { enqueueKeyCases } from './enqueue-keys.ts';
import { evidenceCases } from './evidence.ts';
import { extendCases } from './extend.ts';
import type { ConformanceCase } from './harness.ts';
import { internalJobCases } from './internal-jobs.ts';
import { lapseCases } from './lapse.ts';
import { promoteCases } from './promote.ts';
import { pruneCases } from './prune.ts';
import { queueCases } from './queues.ts';
import { explainCases, readCases } from './reads.ts';
import { reconcileCases } from './reconcile.ts';
import { recurrenceCases } from './recurrence.ts';
import { redriveCases } from './redrive.ts';
import { registerCases } from './register.ts';
import { sealCases } from './seal-close.ts';
import { settleBatchCases, settleCases } from './settle.ts';
import { settleLateCases } from './settle-late.ts';
import { snapshotCases } from './snapshot-restore.ts';
import { subscribeCases } from './subscribe.ts';
import { transactCases, transactStepCases } from './transact.ts';

/** All cases, by verb. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...enqueueCases,
  ...enqueueKeyCases,
  ...enqueueCapacityCases,
  ...claimCases,
  ...claimLaneCases,
  ...beginCases,
  ...extendCases,
  ...settleCases,
  ...settleBatchCases,
  ...settleLateCases,
  ...transactCases,
  ...transactStepCases,
  ...lapseCases,
  ...cancelCases,
  ...reconcileCases,
  ...internalJobCases,
  ...recurrenceCases,
  ...redriveCases,
  ...promoteCases,
  ...dismissCases,
  ...queueCases,
  ...registerCases,
  ...readCases,
  ...explainCases,
  ...evidenceCases,
  ...subscribeCases,
  ...pruneCases,
  ...snapshotCases,
  ...sealCases,
];
