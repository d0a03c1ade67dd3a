/** Opens the store a URL names: `sqlite:FILE`, or the path of a file. */
import { existsSync } from 'node:fs';
import { openSqliteInspector } from '../store/sqlite/doctor.ts';
import { openSqliteStore } from '../store/sqlite/index.ts';
import type { Store } from '../store/store.ts';
import type { Inspector, OpenOptions } from './context.ts';
import { CliError, usage } from './errors.ts';

/** What a store needs of the outside. */
export interface Outside {
  readonly clock: () => number;
  readonly randomId: () => string;
}

/** Opens a store. Only who may create one makes a file that is missing. */
export async function openStoreAt(url: string, options: OpenOptions, outside: Outside): Promise<Store> {
  const path = pathOf(url);
  if (!options.create && !existsSync(path)) throw missing(path);
  return openSqliteStore(path, { ...outside, clockName: 'unix', warn: options.warn });
}

export function openInspectorAt(url: string): Inspector {
  const path = pathOf(url);
  if (!existsSync(path)) throw missing(path);
  return openSqliteInspector(path);
}

function missing(path: string): CliError {
  const next = 'Check --store; custody migrate makes a new store.';
  return new CliError('storage', 'store_missing', `there is no store at ${path}`, next);
}

function pathOf(url: string): string {
  const scheme = /^(?<scheme>[a-z][a-z0-9+]+):/.exec(url)?.groups?.['scheme'];
  const path = scheme === 'sqlite' ? url.slice('sqlite:'.length) : url;
  if (scheme !== undefined && scheme !== 'sqlite') {
    throw usage(`no store is known under ${scheme}:`, 'Give sqlite:FILE, or the path of a file.');
  }
  if (path === '' || path === ':memory:') throw usage(`${url} names no file`, 'Give sqlite:FILE.');
  return path;
}
