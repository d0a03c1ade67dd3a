/** All failure stories that need neither a process nor a disk: every store runs the same ones. */
import type { ConformanceCase } from '../../src/testing/index.ts';
import { effectStories } from './effects.ts';
import { leaseStories } from './leases.ts';
import { orderStories } from './order-and-time.ts';

export const storyCases: readonly ConformanceCase[] = [...effectStories, ...leaseStories, ...orderStories];
