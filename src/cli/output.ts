/** Everything that is printed goes through here: text of jobs is data, so what a terminal would act on is shown as its code. */
import { styleText } from 'node:util';

/** Where text goes; resolves when more may be written. */
export interface Sink {
  write(text: string): Promise<void>;
}

/** How output looks: colours and width of the terminal, or neither. */
export interface Look {
  readonly colours: boolean;
  /** Columns of the terminal; null when the output is not one. */
  readonly columns: number | null;
}

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta';

const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Text of unknown origin on one line: control characters, bidi marks and other invisible formatting, separators and lone
 * surrogates become codes.
 *
 * @example
 * ```ts
 * plain('\u001b[2Jevil'); // '\\u{1b}[2Jevil'
 * ```
 */
export function plain(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${codeOf(character).toString(16)}}`);
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

/** As `plain`, for messages that have lines. */
export function plainLines(text: string): string {
  return text.split('\n').map(plain).join('\n');
}

/**
 * JSON that is safe on a terminal too: what JSON itself leaves in place (DEL, C1 controls, bidi marks) is escaped, and
 * parses back to the same text.
 */
export function safeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, null, indent);
  return text.replace(UNPRINTABLE, (character) =>
    character === '\n' && indent > 0
      ? character
      : Array.from({ length: character.length }, (_, at) => escapeUnit(character.charCodeAt(at))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** Paints text, which must be plain already. */
export function paint(look: Look, colour: Colour, text: string): string {
  return look.colours ? styleText(colour, text, { validateStream: false }) : text;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const NARROW = /[\p{Mn}\p{Me}]/u;

/** Cells a terminal gives to plain text. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

/** One cell: its text, which is made plain, and perhaps its colour. */
export type Cell = string | number | { readonly text: string; readonly colour: Colour };

/** Cells longer than this are cut on a terminal; a pipe gets all of it. */
const CELL_WIDTH_MAX = 48;

/** A table with aligned columns; numbers stand on the right. Without rows there is no table. */
export function table(look: Look, heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  if (rows.length === 0) return '';
  const cells = rows.map((row) => row.map((cell) => fitted(look, textOf(cell))));
  const widths = heads.map((head, column) =>
    Math.max(widthOf(head), ...cells.map((row) => widthOf(row[column] ?? ''))),
  );
  const line = (
    texts: readonly string[],
    colourOf: (column: number) => Colour | null,
    right: boolean[],
  ): string =>
    texts
      .map((text, column) => {
        const gap = ' '.repeat((widths[column] ?? 0) - widthOf(text));
        const colour = colourOf(column);
        const painted = colour === null ? text : paint(look, colour, text);
        return right[column] === true ? gap + painted : painted + gap;
      })
      .join('  ')
      .trimEnd();
  const isNumber = heads.map((_, column) => rows.every((row) => typeof row[column] === 'number'));
  const body = cells.map((texts, index) =>
    line(texts, (column) => colourOf(rows[index]?.[column]), isNumber),
  );
  return `${[line(heads, () => 'bold', isNumber), ...body].join('\n')}\n`;
}

function textOf(cell: Cell): string {
  return plain(typeof cell === 'object' ? cell.text : String(cell));
}

function colourOf(cell: Cell | undefined): Colour | null {
  return typeof cell === 'object' ? cell.colour : null;
}

function fitted(look: Look, text: string): string {
  if (look.columns === null || widthOf(text) <= CELL_WIDTH_MAX) return text;
  let kept = '';
  let width = 0;
  for (const character of text) {
    width += widthOf(character);
    if (width > CELL_WIDTH_MAX - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Name and value pairs, one a line, values aligned. Values are made plain. */
export function pairs(look: Look, entries: readonly (readonly [string, string | number | null])[]): string {
  const shown = entries.filter(([, value]) => value !== null);
  const width = Math.max(0, ...shown.map(([name]) => widthOf(name)));
  return shown
    .map(([name, value]) => `${paint(look, 'dim', name.padEnd(width))}  ${plain(String(value))}\n`)
    .join('');
}

const DATE_MAX = 8.64e15;
/** Ticks before 2001 are no wall clock's: a simulated clock starts at zero. */
const UNIX_MIN = 978_307_200_000;

/** A tick as an absolute time with its zone, or as the number it is where it can be none. */
export function timeOf(tick: number): string {
  return tick >= UNIX_MIN && tick <= DATE_MAX ? new Date(tick).toISOString() : `tick ${tick}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** How long ago, or until when, in one unit: `5m ago`, `in 2h`. */
export function relativeTime(tick: number, now: number): string {
  const distance = Math.abs(now - tick);
  const [unit, length] = UNITS.find(([, milliseconds]) => distance >= milliseconds) ?? ['s', 1_000];
  const amount = `${Math.floor(distance / length)}${unit}`;
  return tick <= now ? `${amount} ago` : `in ${amount}`;
}
