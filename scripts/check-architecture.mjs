// Fails when a file in src/ breaks the shape of the project: an import that points up, a second source of time or
// chance, a file too long to be read, or unfinished work. Run it from the root of the repository.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** A folder of src/ may import folders with a lower number. Files directly in src/ stand above all of these. */
const LAYERS = { core: 0, evidence: 1, checkpoint: 1, store: 2, runtime: 3, effects: 3, cli: 4, http: 4 };
/** `testing` may import every folder, and no folder may import it. */
const TESTING = 'testing';
/** Folders whose imports from outside src/ are limited to the list. */
const OUTSIDE = { core: [], evidence: ['node:crypto'] };
const MAX_LINES = 600;

const IMPORTS = [
  /\b(?:import|export)\b(?:[^'"`;(){}]|\{[^}]*\})*?\bfrom\s*(['"])(?<specifier>[^'"\n]+)\1/dg,
  /\bimport\s*(['"])(?<specifier>[^'"\n]+)\1/dg,
  /\b(?:import|require)\s*\(\s*(['"`])(?<specifier>[^'"`\n]+)\1/dg,
];
const COMPUTED_IMPORT = /\b(?:import|require)\s*\(\s*(?!['"`\s])|\b(?:import|require)\s*\(\s*`[^`]*\$\{/dg;
const TIME_OR_CHANCE = /\bDate\s*\.\s*now\s*\(|\bnew\s+Date\b(?!\s*\(\s*[^\s)])|\bMath\s*\.\s*random\s*\(/dg;
const UNFINISHED = /\b(?:TODO|FIXME)\b/dg;

/** Comments, strings and regular expressions: the three places where `//` and quotes do not mean what they say. */
const TOKENS =
  /(?<comment>\/\*[\s\S]*?\*\/|\/\/[^\n]*)|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|(?<=(?:[=(,:;!&|?{}[\n]|\breturn)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g;

const src = resolve('src');
const problems = [];
let imports = 0;

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.[cm]?tsx?$/.test(entry.name))
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  .sort();
for (const file of files) check(file, readFileSync(file, 'utf8'));
if (files.length === 0) problems.push('src: no TypeScript file found, so nothing was checked');

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`architecture: ${files.length} files, ${imports} imports, every arrow points down\n`);
}

function check(file, text) {
  const folder = folderOf(file);
  const path = relative('.', file);
  const code = text.replace(TOKENS, (token, comment) => (comment ? token.replace(/[^\n]/g, ' ') : token));
  const report = (index, problem) => problems.push(`${path}:${lineAt(text, index)}: ${problem}`);

  if (folder !== '' && folder !== TESTING && !(folder in LAYERS)) {
    report(0, `folder ${folder} has no layer; give it one in scripts/check-architecture.mjs`);
    return;
  }
  for (const pattern of IMPORTS) {
    for (const match of code.matchAll(pattern)) {
      imports++;
      const problem = judge(file, folder, match.groups.specifier);
      if (problem) report(match.indices.groups.specifier[0], problem);
    }
  }
  if (folder in OUTSIDE) {
    for (const match of code.matchAll(COMPUTED_IMPORT)) {
      report(match.index, `${folder} must not import what is computed at run time`);
    }
  }
  if (folder !== TESTING && path !== join('src', 'runtime', 'clock.ts')) {
    for (const match of code.matchAll(TIME_OR_CHANCE)) {
      report(match.index, `${match[0].replace('(', '')} is allowed only in runtime/clock.ts and testing`);
    }
  }
  for (const match of text.matchAll(UNFINISHED)) report(match.index, `${match[0]} in src`);
  const lines = lineAt(text, text.trimEnd().length);
  if (lines > MAX_LINES)
    problems.push(`${path}:${MAX_LINES + 1}: ${lines} lines, at most ${MAX_LINES} allowed`);
}

/** What is wrong with this import, or undefined. */
function judge(file, from, specifier) {
  const name = from === '' ? 'src' : from;
  if (!specifier.startsWith('.')) {
    if (/^custody(\/|$)/.test(specifier)) return `${name} must not import its own package by name`;
    const allowed = OUTSIDE[from];
    return allowed && !allowed.includes(specifier) ? `${name} must not import ${specifier}` : undefined;
  }
  const target = resolve(dirname(file), specifier);
  if (!target.startsWith(src + sep))
    return `${name} must not import ${relative('.', target)}, outside of src`;
  const to = folderOf(target);
  if (from === to || from === TESTING) return undefined;
  const down = to !== TESTING && to !== '' && (from === '' || LAYERS[to] < LAYERS[from]);
  return down ? undefined : `${name} must not import ${to === '' ? 'src' : to}`;
}

/** `core` for src/core/a/b.ts, and the empty string for a file directly in src/. */
function folderOf(file) {
  const parts = relative(src, file).split(sep);
  return parts.length > 1 ? parts[0] : '';
}

function lineAt(text, index) {
  return text.slice(0, index).split('\n').length;
}
