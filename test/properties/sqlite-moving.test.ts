/** The SQLite store selects work by the rule, and neither loses nor believes anything when it is copied. */
import { selectionSuite } from './selection.ts';
import { snapshotSuite } from './snapshots.ts';
import { sqliteBackend } from './sqlite-backend.ts';

selectionSuite(sqliteBackend);
snapshotSuite(sqliteBackend);
