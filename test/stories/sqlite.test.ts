/** The SQLite store comes through every failure story, on a real file. */
import { describe, test } from 'vitest';
import { assertCase } from '../../src/testing/index.ts';
import { openSqlite } from '../conformance/open-sqlite.ts';
import { storyCases } from './index.ts';

describe('sqlite', () => {
  for (const story of storyCases) {
    test(`${story.verb}: ${story.claim}`, () => assertCase(story, openSqlite));
  }
});
