// Reads payments from CSV text, line by line: a bad line is reported with its number and never takes a good one with it.

const COLUMNS = ['invoice', 'account', 'cents', 'currency', 'note'];

/** Every line after the header: `{ line, payment }`, or `{ line, text, problem }` when it cannot be read. */
export function readPayments(text) {
  const [header, ...rows] = text.replace(/\r?\n$/, '').split(/\r?\n/);
  if (header !== COLUMNS.join(',')) throw new Error(`the first line must be ${COLUMNS.join(',')}`);
  return rows.map((row, index) => ({ line: index + 2, text: row, ...readRow(row) }));
}

function readRow(row) {
  const fields = splitRow(row);
  if (fields === null) return { problem: 'a quote is never closed' };
  if (fields.length !== COLUMNS.length) {
    return { problem: `${fields.length} columns instead of ${COLUMNS.length}` };
  }
  const [invoice, account, cents, currency, note] = fields;
  if (invoice === '') return { problem: 'no invoice number' };
  if (!/^-?\d+(\.\d+)?$/.test(cents)) return { problem: `cents is no number: ${JSON.stringify(cents)}` };
  return { payment: { invoice, account, cents: Number(cents), currency, note } };
}

/** The fields of one row, quotes removed; null when a quote is opened and not closed before a comma or the end. */
function splitRow(row) {
  const fields = [];
  let at = 0;
  for (;;) {
    const quoted = /"((?:[^"]|"")*)"(?=,|$)/y;
    quoted.lastIndex = at;
    const match = quoted.exec(row);
    if (match === null && row[at] === '"') return null;
    const end = match === null ? row.indexOf(',', at) : quoted.lastIndex;
    const stop = end === -1 ? row.length : end;
    fields.push(match === null ? row.slice(at, stop) : match[1].replaceAll('""', '"'));
    if (stop === row.length) return fields;
    at = stop + 1;
  }
}
