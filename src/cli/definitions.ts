/** Loads definitions from a module: whatever it exports that `defineJob` made, alone or in lists. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AnyDefinition } from '../runtime/definition.ts';
import { reasonOf } from '../runtime/reason.ts';
import { CliError, usage } from './errors.ts';

/** The definitions a module exports, each once. */
export async function loadDefinitions(file: string): Promise<readonly AnyDefinition[]> {
  const path = resolve(file);
  if (!existsSync(path))
    throw new CliError('not_found', 'file_missing', `there is no file ${path}`, 'Check the path.');
  const exported = Object.values(await load(path)).flatMap((value) =>
    Array.isArray(value) ? (value as readonly unknown[]) : [value],
  );
  const definitions = [...new Set(exported.filter(isDefinition))];
  if (definitions.length > 0) return definitions;
  throw usage(`${path} exports no definition`, 'Export what defineJob returns, or a list of it.');
}

async function load(path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const next = 'Run it with node to see the whole error; a TypeScript file must be compiled first.';
    throw new CliError('usage', 'module_failed', `${path} cannot be loaded: ${reasonOf(error)}`, next);
  }
}

/** By its form: the module may use another copy of the package. */
function isDefinition(value: unknown): value is AnyDefinition {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, revision, idempotent, options, backoffBaseMs } = value as Partial<AnyDefinition>;
  const run: unknown = (options as { readonly run?: unknown } | undefined)?.run;
  return (
    typeof kind === 'string' &&
    typeof revision === 'number' &&
    typeof idempotent === 'boolean' &&
    typeof backoffBaseMs === 'number' &&
    typeof run === 'function'
  );
}
