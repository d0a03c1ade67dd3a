/** A failure story: what went wrong, told step by step against any store, and what must not have come of it. */
import { type ConformanceCase, casesOf, type OpenedStore } from '../../src/testing/conformance/harness.ts';

export type Story = (opened: OpenedStore) => Promise<void>;

/** Stories by their claim, in the form in which conformance cases run. */
export function stories(byClaim: Readonly<Record<string, Story>>): readonly ConformanceCase[] {
  return casesOf('story', byClaim);
}
