// A worker process: charges cards until it is asked to stop. Usage: node worker.mjs DATABASE PROVIDER-URL
import { openCustody } from '../../dist/index.js';
import { chargeCard } from './payment.mjs';
import { paymentProvider } from './payment-provider.mjs';

const [database, url] = process.argv.slice(2);
const tell = (line) => process.stdout.write(`${line}\n`);

const custody = await openCustody(`sqlite:${database}`);
// Short times, so that a reader sees a lost worker noticed within seconds; real ones are the defaults.
const pace = { concurrency: 8, leaseMs: 2_000, pollMs: 100 };
const worker = custody.work([chargeCard(paymentProvider(url), tell)], pace);
await worker.started;
tell(`working ${worker.name}`);

const stop = async () => {
  await worker.stop();
  await custody.close();
  process.exit(0);
};
process.on('SIGTERM', () => void stop());
// Whoever started this process holds its standard input open; when they are gone, so is the worker.
process.stdin.resume().on('end', () => void stop());
