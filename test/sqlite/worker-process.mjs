// A worker in a process of its own, for tests that kill it: says what it is about to do, does it, says that it did.
// usage: node worker-process.mjs DIST DATABASE BOOK NAME

import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [dist, database, book, name] = process.argv.slice(2);
const { openSqliteStore } = await import(pathToFileURL(join(dist, 'store/sqlite/index.js')).href);
const store = await openSqliteStore(database, {
  clock: () => Date.now(),
  clockName: 'unix',
  randomId: randomUUID,
});
const worker = `${name}-${randomUUID()}`;
const definitions = [{ kind: 'charge', revision: 1, idempotent: false }];
const say = (line) => process.stdout.write(`${line}\n`);
const file = openSync(book, 'a');

let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
});

say('ready');
while (!stopping) {
  const request = { worker, leaseMs: 1_500, max: 2, requestId: randomUUID(), definitions, begin: true };
  const deliveries = await store.claim(request);
  if (deliveries.length === 0) {
    say('idle');
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    continue;
  }
  for (const { job, payload } of deliveries) {
    say(`begun ${job.id}`);
    // The provider's book: one durable line is the charge.
    writeSync(file, `${job.id} ${JSON.parse(payload).account}\n`);
    fsyncSync(file);
    say(`charged ${job.id}`);
    const settlement = { id: job.id, token: job.token, worker, outcome: 'succeeded' };
    const { settled } = await store.settle([settlement]);
    say(`settled ${job.id} ${settled[0].ok ? 'ok' : settled[0].refused}`);
  }
}
closeSync(file);
await store.close();
say('stopped');
