// A thousand payments from a file, two worker processes, a provider with bad days and one SIGKILL: what is left is a table
// in which every line of the file has an end and a reason. Exits 1 unless that table is true.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCustody, STATE } from '../../dist/index.js';
import { admit } from './admit.mjs';
import { audit } from './audit.mjs';
import { Child } from './children.mjs';
import { chargeCard } from './payment.mjs';
import { paymentProvider } from './payment-provider.mjs';
import { count, heading, progress, say, shortened } from './print.mjs';
import { readPayments } from './read-payments.mjs';
import { tellAudit, tellRefused, tellStory } from './tell.mjs';

const OPEN = [STATE.PENDING, STATE.SCHEDULED, STATE.LEASED, STATE.RUNNING, STATE.UNCERTAIN];
const PATIENCE_MS = 120_000;
const LOOK_EVERY_MS = 100;
const FAULTS_SHOWN = 20;

const started = performance.now();
const folder = mkdtempSync(join(tmpdir(), 'custody-payments-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
setTimeout(() => {
  console.error(`demo: not done after ${PATIENCE_MS / 1_000} seconds, given up`);
  process.exit(1);
}, PATIENCE_MS).unref();

const file = readFileSync(new URL('payments.csv', import.meta.url), 'utf8');
const lines = readPayments(file).slice(0, Number(process.env.CUSTODY_DEMO_PAYMENTS ?? Infinity));
heading(`${count(lines.length)} payments, and none of them guessed`, '=');
say(
  'Every line of payments.csv becomes a durable job that charges a card, or is refused with a reason. Two worker',
);
say(
  'processes make the charges; one is killed in the middle. A charge that may or may not have been made is neither',
);
say(
  'repeated nor called failed: it rests as UNCERTAIN until the provider has been asked, and the answer is recorded.',
);

heading('1. The file');
const database = join(folder, 'jobs.db');
const custody = await openCustody(`sqlite:${database}`);

const provider = new Child('provider', 'provider.mjs');
const url = `http://127.0.0.1:${(await provider.line('listening'))[1]}`;
const bank = paymentProvider(url);
const { admitted, refused } = await admit(custody, chargeCard(bank), lines);
say(
  `${count(lines.length)} lines read, ${count(admitted.size)} of them are jobs now, on disk before this line is printed.`,
);
tellRefused(refused);

heading('2. The run');
const killAfter = Math.ceil(admitted.size / 8);
const ended = allEnded();
const first = startWorker('worker 1');
const killed = first.line('answered', killAfter).then(async ([, invoice]) => {
  await first.kill();
  return invoice;
});
await introduce(first);
const second = startWorker('worker 2');
await introduce(second);
say('Each takes up to eight payments at a time, and never two of one account at once.');
const interrupted = await killed;
say(
  `worker 1 is killed (SIGKILL) as the provider answers it about ${interrupted}, with others in its hands.`,
);
const third = startWorker('worker 3');
await introduce(third);
say('It is told nothing about worker 1; what there is to know is in the file.');
await ended;
await Promise.all([second.stop(), third.stop()]);
say('All jobs have ended, and both workers have stopped.');

const found = await audit(custody.store, admitted, await bank.books());
tellAudit({ lines: lines.length, refused, found });
tellStory(found.uncertain, interrupted);
await custody.close();
await provider.kill();

const { lost, doubled, balancesMatch, ledgerVerified, faults, uncertain } = found;
const settled = found.charged.length + found.notCharged.length;
if (settled + refused.length !== lines.length) faults.push('the lines of the file do not add up');
const failed = faults.length > 0;
say();
say(`(${((performance.now() - started) / 1_000).toFixed(1)} seconds)`);
for (const fault of faults.slice(0, FAULTS_SHOWN)) say(`FAULT: ${fault}`);
if (faults.length > FAULTS_SHOWN) say(`and ${faults.length - FAULTS_SHOWN} more faults`);
say(
  [
    `demo: ${lines.length} payments`,
    `${settled} settled`,
    `${refused.length} refused`,
    `${uncertain.filter(({ doubt }) => doubt.decision !== null).length} uncertain resolved`,
    `${lost} lost`,
    `${doubled} doubled`,
    `balances ${balancesMatch ? 'match' : 'DIFFER'}`,
    `ledger ${ledgerVerified ? 'verified' : 'NOT VERIFIED'}${failed ? ', FAILED' : ''}`,
  ].join(', '),
);
process.exit(failed ? 1 : 0);

function startWorker(name) {
  return new Child(name, 'worker.mjs', database, url);
}

/** Says under which name the ledgers will know a worker. */
async function introduce(child) {
  const [, name] = await child.line('working');
  say(`${child.name} starts: ${shortened(name)} in the ledgers.`);
}

/** Jobs that have not ended, and how many of those are UNCERTAIN. */
async function openJobs() {
  const { states } = await custody.store.counts();
  const open = OPEN.reduce((sum, state) => sum + (states[state] ?? 0), 0);
  return { open, uncertain: states[STATE.UNCERTAIN] ?? 0 };
}

/** Looks at the store until every job has ended, and shows how far it has come. */
async function allEnded() {
  for (;;) {
    const { open, uncertain: doubtful } = await openJobs();
    if (open === 0) return progress('');
    progress(
      `${count(admitted.size - open)} of ${count(admitted.size)} payments ended, ${doubtful} uncertain`,
    );
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_EVERY_MS);
    });
  }
}
