/**
 * What every worker does for all: it lapses what dead ones left behind and lets go what retention allows. It repeats for
 * ever and apart from heartbeats, so an error, or a store that is slow here, costs one round and no lease.
 */
import { limits } from '../core/index.ts';
import type { PruneRequest, Store } from '../store/store.ts';
import type { Logger } from './log.ts';
import { reasonOf } from './reason.ts';

/** Ages since their end at which jobs may go, in milliseconds; null keeps them for ever. Default 7 days. */
export interface Retention {
  readonly succeededAfterMs?: number | null;
  readonly cancelledAfterMs?: number | null;
  /** Failed and dead jobs go only once they were dismissed. */
  readonly failedAfterMs?: number | null;
}

export interface MaintenanceHost {
  readonly store: Store;
  readonly worker: string;
  readonly log: Logger;
  readonly random: () => number;
  readonly isRunning: () => boolean;
  /** A timer that is taken back when the worker stops. */
  readonly after: (waitMs: number, call: () => void) => void;
}

const SWEEP_MS = 1_000;
const PRUNE_MS = 3_600_000;
const FAILED_WAIT_MS_MAX = 60_000;

/** Starts both loops; they end with the worker. `retention` null prunes nothing. */
export function startMaintenance(host: MaintenanceHost, retention: Retention | null): void {
  repeat(host, SWEEP_MS, 'a sweep over overdue jobs failed', async () => {
    while (host.isRunning()) {
      const { more } = await host.store.lapse(limits.lapsePageMax);
      if (!more) return;
    }
  });
  if (retention === null) return;
  const request: PruneRequest = { ...retention, by: { actor: host.worker, reason: 'retention' } };
  repeat(host, PRUNE_MS, 'pruning failed', async () => {
    while (host.isRunning()) {
      const { more } = await host.store.prune(request);
      if (!more) return;
    }
  });
}

function repeat(host: MaintenanceHost, everyMs: number, problem: string, work: () => Promise<void>): void {
  let failures = 0;
  const again = (): void => {
    if (!host.isRunning()) return;
    const waitMs = Math.min(everyMs * 2 ** failures, Math.max(everyMs, FAILED_WAIT_MS_MAX));
    host.after(waitMs * (0.75 + 0.5 * host.random()), () => {
      work().then(
        () => {
          failures = 0;
          again();
        },
        (error: unknown) => {
          // Said when it begins; the next round looks at everything again, so nothing is lost by it.
          if (failures === 0) host.log.warn({ error: reasonOf(error) }, problem);
          failures = Math.min(failures + 1, 20);
          again();
        },
      );
    });
  };
  again();
}
