// Prints for a person: headings, tables with aligned columns, and one progress line that only a terminal shows.

const WIDTH = 116;

export function say(text = '') {
  clearProgress();
  console.log(text);
}

export function heading(text, line = '-') {
  say();
  say(text);
  say(line.repeat(text.length));
}

/** Rows of cells, each column as wide as its widest cell; numbers and amounts stand to the right. */
export function table(rows, indent = '  ') {
  const cells = rows.map((row) => row.map(shown).map((text) => ({ text, right: /^[\d,.]+$/.test(text) })));
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].text.length)));
  for (const row of cells) {
    const line = row.map(({ text, right }, column) =>
      right ? text.padStart(widths[column]) : text.padEnd(widths[column]),
    );
    say(`${indent}${line.join('  ')}`.trimEnd());
  }
}

/** Replaces the last progress line. */
export function progress(text) {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001b[2K${text}`);
}

function clearProgress() {
  progress('');
}

/** Whole numbers with commas; text from the outside without characters that a terminal would act on. */
function shown(cell) {
  if (typeof cell === 'number') return count(cell);
  return cell.replace(/[\p{Cc}\p{Cf}]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** A sentence in lines that leave room for `before` on the first and as much space on the others. */
export function sayWrapped(before, sentence) {
  let line = before;
  for (const word of sentence.split(' ')) {
    if (line.length + 1 + word.length > WIDTH) {
      say(line);
      line = ' '.repeat(before.length);
    }
    line = `${line} ${word}`;
  }
  say(line);
}

/** Random names cut to what tells them apart here. */
export function shortened(text) {
  return text.replace(/([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '$1');
}

export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `123456` cents as `1,234.56`. */
export function money(cents) {
  return `${count(Math.floor(cents / 100))}.${String(cents % 100).padStart(2, '0')}`;
}
