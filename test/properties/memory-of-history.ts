/** What the auditor remembers of a history: only what was asked, answered and read, never a look inside the store. */
import type { JobRequest } from '../../src/core/index.ts';

/** A key or request id that was taken, by which job and for what content. */
export interface Taken {
  readonly id: number;
  readonly content: string;
  readonly key: string | null;
}

/** What of a job's attempts matters after they are gone. */
export interface Attempts {
  readonly idempotent: boolean;
  /** The token under which the handler was begun and has not been settled or lost yet. */
  readonly running: number | null;
  /** An attempt was lost or reported uncertain, and nobody has decided it. */
  readonly undecided: boolean;
}

export class Memory {
  lastToken = 0;
  lastId = 0;
  /** What the next token and the next id must reach after a copy. */
  tokenFloor = 0;
  idFloor = 0;
  readonly paused: Set<string> = new Set();
  readonly bounds: Map<string, number | null> = new Map();
  readonly keys: Map<string, Taken> = new Map();
  readonly requests: Map<string, Taken> = new Map();
  /** When jobs ended, of pruned ones too. */
  readonly ended: Map<number, number> = new Map();
  readonly attempts: Map<number, Attempts> = new Map();
  /** The newest job of a lane that was ever given to a holder. */
  readonly started: Map<string, number> = new Map();
  /** Results of committed effects and finished steps by lineage, occurrence and key. */
  readonly effects: Map<string, string> = new Map();
  /** How often effects were applied, as the account must say; null when it has to be read again. */
  balance: number | null = 0;
  readonly granted: Map<string, readonly { readonly id: number; readonly token: number }[]> = new Map();
}

/** Whatever a key covers. */
export function contentOf(request: JobRequest): string {
  const { kind, queue, orderingKey, recurrence, payload } = request;
  return JSON.stringify([kind, queue, orderingKey, recurrence, payload]);
}
