/** One step of a history as it is seen from outside: what was asked, what was answered, and every job before and after. */
import type { Fact, JobRequest } from '../../src/core/index.ts';
import type {
  ClaimRequest,
  Delivery,
  EnqueueVerdict,
  ExtendVerdict,
  Holder,
  JobView,
  OperatorRequest,
  Pruned,
  PruneRequest,
  ReconcileRequest,
  ReconcileVerdict,
  RedriveRequest,
  RedriveVerdict,
  Settlement,
  Transacted,
  Verdict,
} from '../../src/store/store.ts';

export type Views = ReadonlyMap<number, JobView>;

/** What an effect or step call inside a transaction was told, and whether its `apply` ran. */
export interface Marked {
  readonly type: 'commit' | 'step';
  readonly key: string;
  readonly content: number;
  readonly ran: boolean;
  readonly known: boolean;
  readonly result: unknown;
}

export interface TransactCall {
  readonly verb: 'transact';
  readonly holder: Holder;
  /** What `apply` threw of its own accord is `threw`; then nothing may have happened. */
  readonly answer: Transacted<null> | 'threw';
  readonly entered: boolean;
  /** The clock and the account as the transaction saw them. */
  readonly now: number | null;
  readonly balance: number | null;
  readonly marked: readonly Marked[];
  readonly requests: readonly JobRequest[];
  readonly verdicts: readonly EnqueueVerdict[];
  readonly settled: boolean;
}

export type Call =
  | {
      readonly verb: 'enqueue';
      readonly requests: readonly JobRequest[];
      readonly atomic: boolean;
      readonly verdicts: readonly EnqueueVerdict[];
    }
  | { readonly verb: 'claim'; readonly claim: ClaimRequest; readonly claimed: readonly Delivery[] }
  | { readonly verb: 'begin'; readonly holders: readonly Holder[]; readonly verdicts: readonly Verdict[] }
  | {
      readonly verb: 'extend';
      readonly extensions: readonly (Holder & { readonly extendMs: number })[];
      readonly verdicts: readonly ExtendVerdict[];
    }
  | {
      readonly verb: 'settle';
      readonly settlements: readonly Settlement[];
      readonly verdicts: readonly Verdict[];
      readonly claim: ClaimRequest | null;
      readonly claimed: readonly Delivery[];
      /** The same settlements had been answered before, and nothing was forgotten since. */
      readonly repeated: boolean;
    }
  | TransactCall
  | {
      readonly verb: 'lapse';
      readonly limit: number;
      readonly ids: readonly number[];
      readonly more: boolean;
    }
  | {
      readonly verb: 'cancel' | 'promote' | 'dismiss';
      readonly request: OperatorRequest;
      readonly verdict: Verdict;
    }
  | { readonly verb: 'reconcile'; readonly request: ReconcileRequest; readonly verdict: ReconcileVerdict }
  | { readonly verb: 'redrive'; readonly request: RedriveRequest; readonly verdict: RedriveVerdict }
  | { readonly verb: 'pause' | 'resume'; readonly queue: string }
  | { readonly verb: 'configure'; readonly queue: string; readonly bound: number | null }
  | { readonly verb: 'prune'; readonly request: PruneRequest; readonly pruned: Pruned }
  | { readonly verb: 'clock'; readonly floor: number; readonly reading: number; readonly seen: number }
  | { readonly verb: 'move'; readonly as: 'reopen' | 'restart' | 'copy' }
  | { readonly verb: 'garbage'; readonly what: string; readonly code: string | null }
  | {
      readonly verb: 'look';
      readonly explained: ReadonlyMap<number, string>;
      readonly definitions: ClaimRequest['definitions'];
    };

export interface Step {
  readonly call: Call;
  /** The store's clock: not below its last commit, unless it was followed back. */
  readonly now: number;
  readonly before: Views;
  readonly after: Views;
  /** Facts that this step recorded, by job. */
  readonly recorded: ReadonlyMap<number, readonly Fact[]>;
  /** Jobs whose earlier facts are not what they were. */
  readonly rewritten: ReadonlySet<number>;
}
