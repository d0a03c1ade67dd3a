/** `custody prune` removes ended jobs past their age, page by page; what a person must still see stays. */
import { limits } from '../../core/index.ts';
import type { By, PruneRequest } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { addConfirmation, type ConfirmOptions, confirm } from '../confirm.ts';
import { breathe, progressOf, withStore } from '../context.ts';
import { addBy, type ByOptions, byOf, durationOrNever, wholeNumber } from '../options.ts';

interface PruneOptions extends ByOptions, ConfirmOptions {
  readonly succeededAfter?: number | 'never';
  readonly cancelledAfter?: number | 'never';
  readonly failedAfter?: number | 'never';
  readonly undismissed?: boolean;
  readonly max?: number;
}

export const addPrune: AddCommand = defineCommand<PruneOptions>({
  usage: 'prune',
  summary: 'remove ended jobs past their age, with their evidence',
  details: `UNCERTAIN jobs never go. Failed and dead jobs, and whatever needs you, go only once dismissed, or with --undismissed.
Idempotency keys outlive their jobs: they are kept for their own time.`,
  examples: ["custody prune --succeeded-after 30d --failed-after never --reason 'retention'"],
  json: '{ jobs: number, keys: number, effects: number, more: boolean }',
  exits: [],
  options: (command) => {
    command
      .option('--succeeded-after <time>', 'age of SUCCEEDED jobs, or never (default: 7d)', durationOrNever)
      .option('--cancelled-after <time>', 'age of CANCELLED jobs, or never (default: 7d)', durationOrNever)
      .option('--failed-after <time>', 'age of failed and dead jobs, or never (default: 7d)', durationOrNever)
      .option('--undismissed', 'also failed and dead jobs nobody has looked at')
      .option('--max <count>', 'remove at most this many jobs', wholeNumber(1, limits.idMax));
    addBy(command, 'optional');
    addConfirmation(command);
  },
  run: async (run) => {
    const { max = Number.POSITIVE_INFINITY, undismissed = false } = run.options;
    const by = byOf(run);
    await confirm(run, 'remove ended jobs and their evidence for good');
    await withStore(run, async (store) => {
      const sum = { jobs: 0, keys: 0, effects: 0, more: true };
      const progress = progressOf(run, 'pruning', null);
      try {
        while (sum.more && sum.jobs < max) {
          await breathe(run.context);
          const limit = Math.min(limits.prunePageMax, max - sum.jobs);
          const pruned = await store.prune(requestOf(run.options, by, undismissed, limit));
          sum.jobs += pruned.jobs;
          sum.keys += pruned.keys;
          sum.effects += pruned.effects;
          sum.more = pruned.more;
          progress.at(sum.jobs);
        }
      } finally {
        await progress.end();
        const more = sum.more ? ' More are due.' : '';
        await answer(
          run,
          sum,
          `Removed ${sum.jobs} jobs, ${sum.keys} keys, ${sum.effects} effects.${more}\n`,
        );
      }
    });
  },
});

function requestOf(options: PruneOptions, by: By, undismissed: boolean, limit: number): PruneRequest {
  const { succeededAfter, cancelledAfter, failedAfter } = options;
  return {
    by,
    undismissed,
    limit,
    ...(succeededAfter === undefined ? {} : { succeededAfterMs: ageOf(succeededAfter) }),
    ...(cancelledAfter === undefined ? {} : { cancelledAfterMs: ageOf(cancelledAfter) }),
    ...(failedAfter === undefined ? {} : { failedAfterMs: ageOf(failedAfter) }),
  };
}

function ageOf(after: number | 'never'): number | null {
  return after === 'never' ? null : after;
}
