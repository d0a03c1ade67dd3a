// Writes payments.csv: 1,000 lines as a careless shop would send them, the same ones every time it is run.
import { writeFileSync } from 'node:fs';

const LINES = 1_000;
const ACCOUNTS = 50;
const CURRENCIES = ['EUR', 'GBP', 'USD'];
const NOTES = [
  '',
  'monthly plan',
  '"dinner, two guests"',
  '"Größe L, grün"',
  '"the ""good"" chair"',
  'second half',
  'gift card',
  '=SUM(A1:A9)',
];
/** One line in fourteen or so is not as it should be; the first 150 lines hold every sort of it. */
const SPOILED = [
  { every: 41, from: 24, spoil: ({ earlier }) => earlier },
  { every: 131, from: 60, spoil: ({ earlier }) => otherCents(earlier) },
  {
    every: 83,
    from: 33,
    spoil: ({ fields, turn }) =>
      [
        fields.slice(0, 3).join(','),
        [...fields.slice(0, 2), '1,299.00', ...fields.slice(3)].join(','),
        [...fields.slice(0, 4), '"never closed'].join(','),
        [...fields.slice(0, 2), 'twelve', ...fields.slice(3)].join(','),
        ['', ...fields.slice(1)].join(','),
      ][turn % 5],
  },
  {
    every: 71,
    from: 47,
    spoil: ({ fields, turn }) =>
      [
        [...fields.slice(0, 2), '0', ...fields.slice(3)].join(','),
        [...fields.slice(0, 2), '-1250', ...fields.slice(3)].join(','),
        [...fields.slice(0, 2), '1999.5', ...fields.slice(3)].join(','),
        [...fields.slice(0, 2), '250000000', ...fields.slice(3)].join(','),
        [...fields.slice(0, 3), 'EURO', fields[4]].join(','),
      ][turn % 5],
  },
];

const random = randomFrom(20_260_117);
const good = [];
const lines = ['invoice,account,cents,currency,note'];
for (let number = 1; number <= LINES; number += 1) {
  const spoiled = SPOILED.find(({ every, from }) => number >= from && (number - from) % every === 0);
  const fields = payment(number);
  if (spoiled === undefined) {
    good.push(fields.join(','));
    lines.push(fields.join(','));
    continue;
  }
  const turn = (number - spoiled.from) / spoiled.every;
  const earlier = good[Math.floor(random() * good.length)];
  lines.push(spoiled.spoil({ fields, earlier, turn }));
}
writeFileSync(new URL('payments.csv', import.meta.url), `${lines.join('\n')}\n`);
console.log(`payments.csv: ${lines.length - 1} lines, ${good.length} of them in order`);

function payment(number) {
  const account = 1 + Math.floor(random() * ACCOUNTS);
  return [
    `invoice-${String(number).padStart(4, '0')}`,
    `account-${String(account).padStart(2, '0')}`,
    String(100 + Math.floor(random() * 49_900)),
    CURRENCIES[account % CURRENCIES.length],
    NOTES[Math.floor(random() * NOTES.length)],
  ];
}

/** The invoice number of an earlier line, on another amount. */
function otherCents(line) {
  const [invoice, account, cents, ...rest] = line.split(',');
  return [invoice, account, String(Number(cents) + 500), ...rest].join(',');
}

/** Numbers from 0 to 1, always the same ones for a seed (the generator mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
