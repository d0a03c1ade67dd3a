// A small payment provider in a process of its own, with its own books and its own bad days. Like many of them it can say
// what became of a request, but whoever asks twice pays twice. Which requests go wrong depends on their invoice alone.
import { createServer } from 'node:http';

/** Per thousand invoices, in this order; all others go well. */
const BAD_DAYS = [
  { day: 'slow', share: 50 },
  { day: 'unavailable', share: 50 },
  { day: 'answer lost', share: 22 },
  { day: 'request lost', share: 10 },
];

/** What became of each key that came with a request: `{ status: 'charged', receipt }` or `{ status: 'voided' }`. */
const books = new Map();
/** Charges in the order in which they were made. */
const charges = [];
/** How often a charge was asked for each invoice. */
const asked = new Map();

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error('provider:', error);
    response.socket?.destroy();
  });
});
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
// Whoever started this process holds its standard input open; when they are gone, so is the provider.
process.stdin.resume().on('end', () => process.exit(0));

async function answer(request, response) {
  switch (`${request.method} ${request.url}`) {
    case 'POST /charge':
      return charge(await bodyOf(request), response);
    case 'POST /lookup-or-void':
      return send(response, 200, lookUpOrVoid(await bodyOf(request)));
    case 'GET /books':
      return send(response, 200, { charges });
    default:
      return send(response, 404, { error: 'no such page' });
  }
}

async function charge(order, response) {
  const time = 1 + (asked.get(order.invoice) ?? 0);
  asked.set(order.invoice, time);
  const chance = hash(order.invoice);
  const day = badDayOf(chance % 1_000);
  if (day === 'unavailable' && time <= 1 + (chance % 2)) {
    return send(response, 503, { error: 'try again later; nothing was charged' });
  }
  await pause(day === 'slow' ? 150 + (chance % 250) : 2 + (chance % 10));
  if (day === 'request lost') return response.socket.destroy();
  const entry = enter(order);
  if (day === 'answer lost') return response.socket.destroy();
  return send(response, entry.status === 'charged' ? 200 : 409, entry);
}

/** Makes the charge, a second time as well, unless its key was voided. */
function enter({ key, invoice, account, cents, currency }) {
  if (books.get(key)?.status === 'voided') return books.get(key);
  const receipt = `receipt-${charges.length + 1}`;
  charges.push({ receipt, invoice, account, cents, currency });
  books.set(key, { status: 'charged', receipt });
  return books.get(key);
}

/** Tells whether the key was charged. If not, it is voided: it cannot be charged from now on, also not by a late request. */
function lookUpOrVoid({ key }) {
  if (!books.has(key)) books.set(key, { status: 'voided' });
  return books.get(key);
}

function badDayOf(chance) {
  let above = 0;
  for (const { day, share } of BAD_DAYS) {
    above += share;
    if (chance < above) return day;
  }
  return null;
}

/** A number that depends on the text alone (FNV-1a, mixed once more). */
function hash(text) {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ character.codePointAt(0), 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}

async function bodyOf(request) {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part;
  return JSON.parse(text);
}

function send(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function pause(milliseconds) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}
