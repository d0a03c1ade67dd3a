/** Selects ready jobs route by route and merges them: what nobody here may run is never scanned over. */

import { tokenTakesOldest } from '../../core/index.ts';
import type { ClaimRequest } from '../store.ts';
import type { Catalogue, Route } from './catalogue.ts';
import { Columns } from './rows.ts';
import type { ReadStatements, Statements } from './statements.ts';

interface Ready {
  readonly id: number;
  readonly priority: number;
}

/** Ids of claimable jobs, each for the token it is about to be given. */
export interface RoutePicker {
  /** Whether jobs whose time had come were marked ready on the way. */
  readonly ripened: boolean;
  next(token: number): number | null;
}

/** Routes a claimer may take: kind known, revision at most its own, queue asked for and not paused. */
export function permittedRoutes(
  read: ReadStatements,
  catalogue: Catalogue,
  request: Pick<ClaimRequest, 'definitions' | 'queues'>,
): readonly Route[] {
  const own = new Map(request.definitions.map(({ kind, revision }) => [kind, revision]));
  const paused = new Set(read.pausedQueues.all().map((row) => new Columns(row).text('queue')));
  return catalogue
    .routes(read)
    .filter(
      ({ kind, revision, queue, internal }) =>
        (own.get(kind) ?? 0) >= revision &&
        (request.queues?.includes(queue) ?? true) &&
        (internal || !paused.has(queue)),
    );
}

/**
 * Opens a selection of at most `request.max` jobs. Nothing becomes ready while it lasts, since it runs in one write
 * transaction in which no job leaves its lane, so the pages read at first stay true.
 */
export function routePicker(
  sql: Statements,
  catalogue: Catalogue,
  request: Pick<ClaimRequest, 'definitions' | 'queues' | 'max'>,
  now: number,
): RoutePicker {
  let ripened = false;
  while (sql.ripen.run(now).changes > 0) ripened = true;
  const routes = permittedRoutes(sql, catalogue, request);
  const taken = new Set<number>();
  const byPriority = new Merge(routes, (route) => page(sql.readyByPriority, route, request.max), preferred);
  const byAge = new Merge(routes, (route) => page(sql.readyByAge, route, request.max), older);
  return {
    ripened,
    next: (token) => {
      const id = (tokenTakesOldest(token) ? byAge : byPriority).take(taken);
      if (id !== null) taken.add(id);
      return id;
    },
  };
}

function page(statement: Statements['readyByAge'], route: Route, limit: number): readonly Ready[] {
  return statement.all(route.route, limit).map((row) => {
    const columns = new Columns(row);
    return { id: columns.number('id'), priority: columns.number('priority') };
  });
}

const older = (a: Ready, b: Ready): boolean => a.id < b.id;
const preferred = (a: Ready, b: Ready): boolean =>
  a.priority > b.priority || (a.priority === b.priority && a.id < b.id);

/** Ordered pages, one per route, read as one. A page is read when it is first looked at. */
class Merge {
  readonly #routes: readonly Route[];
  readonly #read: (route: Route) => readonly Ready[];
  readonly #before: (a: Ready, b: Ready) => boolean;
  #pages: { readonly ready: readonly Ready[]; at: number }[] | null = null;

  constructor(
    routes: readonly Route[],
    read: (route: Route) => readonly Ready[],
    before: (a: Ready, b: Ready) => boolean,
  ) {
    this.#routes = routes;
    this.#read = read;
    this.#before = before;
  }

  take(taken: ReadonlySet<number>): number | null {
    this.#pages ??= this.#routes.map((route) => ({ ready: this.#read(route), at: 0 }));
    let best: { readonly ready: readonly Ready[]; at: number } | null = null;
    for (const one of this.#pages) {
      while (one.at < one.ready.length && taken.has((one.ready[one.at] as Ready).id)) one.at += 1;
      const top = one.ready[one.at];
      if (top === undefined) continue;
      const leader = best?.ready[best.at];
      if (leader === undefined || this.#before(top, leader)) best = one;
    }
    const top = best?.ready[best.at];
    return top === undefined ? null : top.id;
  }
}
