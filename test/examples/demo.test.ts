/** The demo as a reader runs it, on fewer payments: an output that tells of success while something failed is a fault. */
import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, inject, test } from 'vitest';

const PAYMENTS = 150;
const LIMIT_MS = 120_000;
const LAST_LINE =
  /^demo: (\d+) payments, (\d+) settled, (\d+) refused, (\d+) uncertain resolved, 0 lost, 0 doubled, balances match, ledger verified$/;

test(`a demo of ${PAYMENTS} payments with a killed worker accounts for each of them`, async () => {
  const root = resolve(inject('built'), '..');
  cpSync('examples', join(root, 'examples'), { recursive: true });
  const demo = spawn(process.execPath, [join(root, 'examples/payments/demo.mjs')], {
    env: { ...process.env, CUSTODY_DEMO_PAYMENTS: String(PAYMENTS) },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
  });
  const exited = new Promise<number | null>((end) => {
    demo.once('exit', end);
  });
  const [code, printed, complaints] = await Promise.all([exited, text(demo.stdout), text(demo.stderr)]);
  expect(complaints).toBe('');
  const last = printed.trimEnd().split('\n').at(-1) ?? '';
  expect(last).toMatch(LAST_LINE);
  expect(code).toBe(0);
  const [lines = 0, settled = 0, refused = 0, uncertain = 0] = (LAST_LINE.exec(last) ?? [])
    .slice(1)
    .map(Number);
  expect(lines).toBe(PAYMENTS);
  expect(settled + refused, 'every line has an end').toBe(PAYMENTS);
  expect(uncertain, 'answers that were lost leave payments uncertain').toBeGreaterThan(0);
}, 130_000);
