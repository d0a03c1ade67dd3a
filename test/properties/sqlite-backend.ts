/** SQLite stores on real files, as the property suites open them. */
import { openSqliteQuickly } from '../conformance/open-sqlite.ts';
import type { Backend } from './backend.ts';

export const sqliteBackend: Backend = {
  name: 'sqlite',
  open: openSqliteQuickly,
  applicationMoves: true,
  share: 0.25,
};
