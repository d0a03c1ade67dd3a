/** Transactions hold on both stores what nobody may get past. */
import { describe } from 'vitest';
import { openMemory } from './open-memory.ts';
import { openSqlite } from './open-sqlite.ts';
import { transactionTests } from './transactions.ts';

describe('memory', () => {
  transactionTests(openMemory);
});

describe('sqlite', () => {
  transactionTests(openSqlite);
});
