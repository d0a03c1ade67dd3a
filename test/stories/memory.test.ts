/** The memory store comes through every failure story. */
import { describe, test } from 'vitest';
import { assertCase } from '../../src/testing/index.ts';
import { openMemory } from '../conformance/open-memory.ts';
import { storyCases } from './index.ts';

describe('memory', () => {
  for (const story of storyCases) {
    test(`${story.verb}: ${story.claim}`, () => assertCase(story, openMemory));
  }
});
