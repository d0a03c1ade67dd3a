/** Which jobs a command is about: by ids, or by a filter that is read page by page. */
import type { Command } from 'commander';
import type { State } from '../core/index.ts';
import type { FindQuery, JobView, Store } from '../store/store.ts';
import { breathe, type CliContext, type CommonOptions } from './context.ts';
import { collect, stateNames } from './options.ts';

export interface FilterOptions extends CommonOptions {
  readonly state?: readonly State[];
  readonly kind?: readonly string[];
  readonly queue?: readonly string[];
  readonly lane?: string;
  readonly lineage?: string;
  readonly needsYou?: boolean;
  readonly internal?: boolean;
}

export function addFilters(command: Command): void {
  command
    .option('--state <names>', 'only in these states, by name, separated by commas', stateNames)
    .option('--kind <kind>', 'only of this kind; may be repeated', collect)
    .option('--queue <queue>', 'only in this queue; may be repeated', collect)
    .option('--lane <orderingKey>', 'only with this ordering key')
    .option('--lineage <lineage>', 'only of this lineage: a job and all that was redriven from it')
    .option('--needs-you', 'only what waits for a person')
    .option('--internal', 'also jobs that ask about or compensate others');
}

export function hasFilter(options: FilterOptions): boolean {
  const { state, kind, queue, lane, lineage, needsYou } = options;
  return [state, kind, queue, lane, lineage, needsYou].some((filter) => filter !== undefined);
}

/** The filter as a query. What was typed is compared as it is: there are no patterns. */
export function queryOf(options: FilterOptions): FindQuery {
  return {
    states: options.state ?? null,
    kinds: options.kind ?? null,
    queues: options.queue ?? null,
    orderingKey: options.lane ?? null,
    lineage: options.lineage ?? null,
    needsYou: options.needsYou === true ? true : null,
    internal: options.internal === true,
  };
}

/** All jobs of a query in the order of their ids, a page in memory at a time; stops when the command was interrupted. */
export async function* allJobs(
  context: CliContext,
  store: Store,
  query: FindQuery,
): AsyncGenerator<JobView, void, undefined> {
  let afterId: number | null = query.afterId ?? 0;
  while (afterId !== null) {
    await breathe(context);
    const page: { readonly jobs: readonly JobView[]; readonly nextAfterId: number | null } = await store.find(
      {
        ...query,
        afterId,
        limit: 500,
      },
    );
    yield* page.jobs;
    afterId = page.nextAfterId;
  }
}
