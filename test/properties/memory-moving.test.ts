/** The memory store selects work by the rule, and neither loses nor believes anything when it is copied. */
import { memoryBackend } from './backend.ts';
import { selectionSuite } from './selection.ts';
import { snapshotSuite } from './snapshots.ts';

selectionSuite(memoryBackend);
snapshotSuite(memoryBackend);
