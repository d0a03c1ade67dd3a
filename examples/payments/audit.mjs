// Holds every job and its ledger against the provider's books: the demo believes neither side alone.
import { factsOf } from '../../dist/evidence/index.js';
import { STATE, STATE_NAMES, verifyJob } from '../../dist/index.js';

/**
 * `admitted` maps the id of each job to the payment it is for. `faults` is empty when nothing was lost or doubled, the
 * balances match, order was kept, every uncertain payment was decided as the books say, and every ledger verifies.
 */
export async function audit(store, admitted, books) {
  const payments = [];
  for (const [id, payment] of admitted) payments.push(await readBack(store, id, payment));
  const charges = new Map();
  for (const charge of books.charges)
    charges.set(charge.invoice, [...(charges.get(charge.invoice) ?? []), charge]);

  const charged = payments.filter(({ state }) => state === 'SUCCEEDED');
  const notCharged = payments.filter(({ state }) => state === 'PERMANENT_FAILURE');
  const uncertain = payments.filter(({ doubt }) => doubt !== null);
  const lost = [
    ...payments.filter((payment) => !charged.includes(payment) && !notCharged.includes(payment)),
    ...charged.filter(({ invoice }) => !charges.has(invoice)),
  ];
  const doubled = [
    ...[...charges.values()].filter((made) => made.length > 1).map(([{ invoice }]) => ({ invoice })),
    ...payments.filter(({ begins, retries }) => begins > 1 + retries),
  ];
  const accounts = balances(charged, books.charges);
  const unverified = payments.filter(({ verified }) => !verified);
  const outOfOrder = lanes(payments).filter((lane) => !keepsOrder(lane, books.charges));
  const wrong = notCharged.filter(({ invoice }) => charges.has(invoice));
  const undecided = uncertain.filter(({ doubt }) => doubt.decision === null);

  const faults = [
    ...lost.map(({ invoice, state }) => `${invoice} is lost: ${state}`),
    ...doubled.map(({ invoice }) => `${invoice} was charged or started twice`),
    ...wrong.map(({ invoice }) => `${invoice} was charged, and its job says that it was not`),
    ...undecided.map(({ invoice }) => `${invoice} is still uncertain`),
    ...unverified.map(({ invoice, problem }) => `the ledger of ${invoice} does not verify: ${problem}`),
    ...outOfOrder.map(([{ account }]) => `the payments of ${account} were not made in their order`),
    ...accounts.filter(({ jobs, books: held }) => jobs !== held).map(({ account }) => `${account} differs`),
  ];
  return {
    payments,
    charged,
    notCharged,
    uncertain,
    accounts,
    faults,
    needsYou: (await store.counts()).needsYou,
    lost: lost.length,
    doubled: doubled.length,
    balancesMatch: accounts.every(({ jobs, books: held }) => jobs === held),
    outOfOrder: outOfOrder.length,
    ledgerVerified: unverified.length === 0,
    entries: payments.reduce((sum, { entries }) => sum + (entries ?? 0), 0),
  };
}

/** One job as the store and its ledger tell it. */
async function readBack(store, id, payment) {
  const evidence = await store.evidence(id);
  if (evidence === null) return { ...payment, id, state: 'GONE', doubt: null, begins: 0, retries: 0 };
  const verified = verifyJob(evidence);
  const facts = factsOf(evidence.chain);
  return {
    ...payment,
    id,
    evidence,
    facts,
    state: STATE_NAMES[evidence.job.state],
    endedAt: evidence.job.endedAt,
    begunAt: facts.find(({ type }) => type === 'begun')?.tick ?? null,
    begins: facts.filter(({ type }) => type === 'begun').length,
    // Only an answer that nothing was charged allows another start.
    retries: facts.filter(({ type, outcome }) => type === 'settled' && outcome === 'retryable').length,
    doubt: doubtOf(facts),
    verified: verified.ok,
    problem: verified.faults[0]?.code,
    entries: verified.entries,
  };
}

/** How a payment became uncertain and what decided it; null when it never was. */
function doubtOf(facts) {
  const became = facts.find(({ to }) => to === STATE.UNCERTAIN);
  if (became === undefined) return null;
  const decided = facts.find(({ type }) => type === 'reconciled');
  return {
    how: became.type === 'lapsed' ? 'its worker was lost' : 'no answer came',
    worker: facts.findLast(({ type }) => type === 'begun').worker,
    decision: decided?.decision ?? null,
    by: decided?.by ?? null,
    lasted: decided === undefined ? null : decided.tick - became.tick,
  };
}

/** Sum of cents per account, as the jobs and as the provider's books have it. */
function balances(charged, charges) {
  const accounts = new Map();
  const add = (side, { account, currency, cents }) => {
    const sums = accounts.get(account) ?? { account, currency, jobs: 0, books: 0 };
    accounts.set(account, { ...sums, [side]: sums[side] + cents });
  };
  for (const payment of charged) add('jobs', payment);
  for (const charge of charges) add('books', charge);
  return [...accounts.values()].sort((a, b) => (a.account < b.account ? -1 : 1));
}

/** The payments of each account, in the order of their admission. */
function lanes(payments) {
  const byAccount = new Map();
  for (const payment of payments) {
    byAccount.set(payment.account, [...(byAccount.get(payment.account) ?? []), payment]);
  }
  return [...byAccount.values()];
}

/** No payment was begun before the one ahead of it had ended, and the provider has them in the same order. */
function keepsOrder(lane, charges) {
  const { account } = lane[0];
  const waited = lane.every(({ begunAt }, place) => place === 0 || begunAt >= lane[place - 1].endedAt);
  const asked = lane.filter(({ state }) => state === 'SUCCEEDED').map(({ invoice }) => invoice);
  const made = charges.filter((charge) => charge.account === account).map(({ invoice }) => invoice);
  return waited && asked.join() === made.join();
}
