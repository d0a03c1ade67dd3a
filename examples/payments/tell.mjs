// The tables of the demo, and the story of one payment that nobody could vouch for.
import { timelineOf } from '../../dist/index.js';
import { count, heading, money, say, sayWrapped, shortened, table } from './print.mjs';

const REASONS = [
  ['duplicate line', 'merged into the job that exists: same invoice, same content'],
  ['invoice number used again', 'refused, never merged: same invoice, other content'],
  ['malformed line', 'refused: not a line of five columns that can be read'],
  ['payment fails its schema', 'refused: not a payment that may be made'],
];
const SAYS = { reconciler: 'the provider said: ', late_report: 'its worker reported late: ' };
const ANSWERS = { succeeded: 'it was charged', failed: 'it was not, and is void now' };
const ACCOUNTS_SHOWN = 4;

/** Why lines did not become jobs, with one example of each reason. */
export function tellRefused(refused) {
  const rows = REASONS.map(([why, meaning]) => {
    const those = refused.filter((line) => line.why === why);
    return [
      those.length,
      why,
      meaning,
      those.length === 0 ? '' : `line ${those[0].line}: ${those[0].detail}`,
    ];
  });
  say('The others did not become jobs, and each line knows why:');
  for (const [number, why, meaning, example] of rows) {
    say(`${count(number).padStart(5)}  ${why.padEnd(26)} ${meaning}`);
    if (example !== '') say(`${' '.repeat(34)}${example}`);
  }
}

/** Where every line of the file ended. */
export function tellAudit({ lines, refused, found }) {
  const { charged, notCharged, uncertain, payments, needsYou } = found;
  const those = (reason) => refused.filter(({ why }) => why === reason).length;
  heading('3. Where every line ended');
  table([
    ['lines of the file', lines, ''],
    ['refused', refused.length, 'never became a job'],
    ...REASONS.map(([why]) => [`  ${why}`, those(why), '']),
    ['settled', charged.length + notCharged.length, 'a job that has ended, and why is proven'],
    ['  charged', charged.length, 'SUCCEEDED'],
    [
      '  not charged',
      notCharged.length,
      'PERMANENT_FAILURE: voided at the provider, so it cannot be charged any more',
    ],
  ]);
  const retried = payments.filter(({ retries }) => retries > 0).length;
  say();
  say(`${count(retried)} payments were tried again: the provider had said that nothing was charged.`);

  say(
    `${count(needsYou)} jobs are listed under "needs you": not charged, so a person has to send those invoices again.`,
  );

  heading('4. Payments nobody could vouch for');
  tellUncertain(uncertain);

  heading('5. The books');
  tellBooks(found);
}

/** What made payments uncertain, and how each was decided. */
function tellUncertain(uncertain) {
  const cases = new Map();
  const add = (payments, how, by, decision) => {
    const label = `${how}|${SAYS[by] ?? 'nobody said anything'}${ANSWERS[decision] ?? ''}`;
    cases.set(label, (cases.get(label) ?? 0) + payments);
  };
  // These four are the usual ones, and shown also when there are none.
  for (const how of ['no answer came', 'its worker was lost']) {
    for (const decision of ['succeeded', 'failed']) add(0, how, 'reconciler', decision);
  }
  for (const { doubt } of uncertain) add(1, doubt.how, doubt.by, doubt.decision);
  const rows = [...cases].map(([label, payments]) => [...label.split('|'), payments]);
  table([['UNCERTAIN because', 'decided, because', 'payments'], ...rows]);
  say();
  say(
    'To a worker all of these look the same. Run again, those that were charged would be charged twice; called failed,',
  );
  say(
    'they would be paid and not delivered. While one waited, so did later payments of its account, and no others.',
  );
}

/** Balances from the jobs beside those from the provider. */
function tellBooks({ accounts, payments, entries, outOfOrder, ledgerVerified }) {
  const line = ({ account, currency, jobs, books }) => [
    account,
    currency,
    money(jobs),
    money(books),
    jobs === books ? 'equal' : 'DIFFERENT',
  ];
  const different = accounts.filter(({ jobs, books }) => jobs !== books);
  const some = different.length === 0 ? accounts.slice(0, ACCOUNTS_SHOWN) : different;
  const others = accounts.length - some.length;
  table([
    ['account', '', 'by the jobs', 'by the provider', ''],
    ...some.map(line),
    ...(others === 0 ? [] : [[`and ${others} more`, '', '', '', 'all equal']]),
  ]);
  say();
  if (outOfOrder === 0) say('The provider charged every account in the order of the file.');
  if (ledgerVerified)
    say(`${count(payments.length)} ledgers with ${count(entries)} entries: hashed, replayed and found true.`);
}

/** One uncertain payment from its ledger alone: the interrupted one, if its worker was killed in time. */
export function tellStory(uncertain, interrupted) {
  const lost = uncertain.filter(({ doubt }) => doubt.how === 'its worker was lost');
  const told = lost.find(({ invoice }) => invoice === interrupted) ?? lost[0] ?? uncertain[0];
  if (told === undefined) return;
  const { invoice, evidence, facts, entries } = told;
  const { submission } = evidence.job;
  heading(`6. One of them, as its ledger tells it: ${invoice}`);
  const since = (tick) => `${((tick - submission.admittedAt) / 1_000).toFixed(3)} s`;
  const moments = timelineOf(submission, facts, since);
  const width = Math.max(...moments.map(({ state }) => state.length));
  for (const { tick, state, sentence } of moments) {
    sayWrapped(`${since(tick).padStart(9)}  ${state.padEnd(width)} `, shortened(sentence));
  }
  say(`verified: ${entries} entries, replayed, lead to this state, and their hashes to the root`);
  say(`${evidence.chain.root}`);
}
