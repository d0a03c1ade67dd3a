/** The SQLite store passes the conformance suite on a real file. */
import { describe, test } from 'vitest';
import { assertCase, conformanceCases } from '../../src/testing/index.ts';
import { openSqlite } from './open-sqlite.ts';

describe('sqlite', () => {
  for (const one of conformanceCases) {
    test(`${one.verb}: ${one.claim}`, () => assertCase(one, openSqlite));
  }
});
