/** Says what was enqueued, or fails with everything that was: a test of a program need not know how stores are read. */
import type { Custody } from '../runtime/custody.ts';
import type { JobDefinition, PayloadOf } from '../runtime/definition.ts';
import type { StandardSchema } from '../runtime/standard-schema.ts';
import type { JobView } from '../store/store.ts';
import { contains, shown } from './run-once.ts';

/** Part of a payload, or a function that says whether a payload is meant. */
export type PayloadMatcher<Payload> = PartOf<Payload> | ((payload: Payload) => boolean);
type PartOf<Payload> = Payload extends readonly unknown[]
  ? Payload
  : Payload extends object
    ? { readonly [Name in keyof Payload]?: PartOf<Payload[Name]> }
    : Payload;

const SHOWN_MAX = 20;

/**
 * The jobs of this kind whose stored payload matches, in whatever state; throws an Error that lists those there are when
 * none does, or when not exactly `times` do.
 *
 * @example
 * ```ts
 * const [job] = await assertEnqueued(custody, welcomeMail, { to: 'alice@example.org' });
 * ```
 */
export async function assertEnqueued<Schema extends StandardSchema, Result>(
  custody: Custody,
  definition: JobDefinition<Schema, Result>,
  matcher?: PayloadMatcher<PayloadOf<JobDefinition<Schema, Result>>>,
  options: { readonly times?: number } = {},
): Promise<readonly JobView[]> {
  const all = await jobsOf(custody, definition.kind);
  const matching = all.filter((view) => matches(JSON.parse(view.payload), matcher));
  const { times } = options;
  if (times === undefined ? matching.length > 0 : matching.length === times) return matching;
  const wanted = matcher === undefined || typeof matcher === 'function' ? '' : ` with ${shown(matcher)}`;
  const lines = all.slice(0, SHOWN_MAX).map((view) => `  job ${view.job.id}: ${view.payload}`);
  const left = all.length > SHOWN_MAX ? [`  and ${all.length - SHOWN_MAX} more`] : [];
  const expected = times === undefined ? 'at least 1 job' : `${times} jobs`;
  throw new Error(
    [
      `expected ${expected} of kind ${definition.kind}${wanted}, found ${matching.length} among ${all.length}`,
      ...lines,
      ...left,
    ].join('\n'),
  );
}

async function jobsOf(custody: Custody, kind: string): Promise<readonly JobView[]> {
  const all: JobView[] = [];
  for (let afterId: number | null = 0; afterId !== null; ) {
    const { jobs, nextAfterId } = await custody.store.find({ kinds: [kind], afterId, limit: 1_000 });
    all.push(...jobs);
    afterId = nextAfterId;
  }
  return all;
}

function matches(payload: unknown, matcher: unknown): boolean {
  if (matcher === undefined) return true;
  if (typeof matcher !== 'function') return contains(payload, matcher);
  return (matcher as (payload: unknown) => boolean)(payload);
}
