/** What a process remembers of a store between transactions: routes and submissions, neither of which ever changes. */
import type { Submission } from '../../core/index.ts';
import { Columns } from './rows.ts';
import type { ReadStatements } from './statements.ts';

/** A queue, kind and revision, internal jobs apart since a pause does not hold them. */
export interface Route {
  readonly route: number;
  readonly queue: string;
  readonly kind: string;
  readonly revision: number;
  readonly internal: boolean;
}

/** Submissions kept at one time; the oldest go first. */
const SUBMISSIONS_MAX = 20_000;

/** A cache without staleness: within an epoch, ids and routes are never given twice, and are written once. */
export class Catalogue {
  #routes = new Map<string, Route>();
  #highest = 0;
  #epoch = 0;
  readonly #submissions = new Map<number, Submission>();

  /** All routes known so far, those other processes made since included. */
  routes(read: ReadStatements): readonly Route[] {
    for (const row of read.routes.all(this.#highest)) {
      const columns = new Columns(row);
      this.add({
        route: columns.number('route'),
        queue: columns.text('queue'),
        kind: columns.text('kind'),
        revision: columns.number('revision'),
        internal: columns.flag('internal'),
      });
    }
    return [...this.#routes.values()];
  }

  route(queue: string, kind: string, revision: number, internal: boolean): Route | undefined {
    return this.#routes.get(routeName(queue, kind, revision, internal));
  }

  add(route: Route): void {
    this.#routes.set(routeName(route.queue, route.kind, route.revision, route.internal), route);
    this.#highest = Math.max(this.#highest, route.route);
  }

  submission(read: ReadStatements, id: number): Submission {
    const known = this.#submissions.get(id);
    if (known !== undefined) return known;
    const row = read.asked.get(id);
    if (row === undefined) throw new Error(`job ${id} has no submission`);
    const submission = JSON.parse(new Columns(row).text('asked')) as Submission;
    this.remember(id, submission);
    return submission;
  }

  remember(id: number, submission: Submission): void {
    if (this.#submissions.size >= SUBMISSIONS_MAX) {
      const oldest = this.#submissions.keys().next();
      if (oldest.done !== true) this.#submissions.delete(oldest.value);
    }
    this.#submissions.set(id, submission);
  }

  /** Forgets what was known of another epoch: a restore may have given known ids to other jobs. */
  enter(epoch: number): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.forget();
  }

  /** After a rollback: a route or submission of the undone transaction must not be remembered. */
  forget(): void {
    this.#routes = new Map();
    this.#highest = 0;
    this.#submissions.clear();
  }
}

function routeName(queue: string, kind: string, revision: number, internal: boolean): string {
  return JSON.stringify([queue, kind, revision, internal]);
}
