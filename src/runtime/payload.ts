/** From stored text to what a handler takes: a payload that its own revision or an upgrade refuses never reaches one. */
import type { Job } from '../core/index.ts';
import type { AnyDefinition } from './definition.ts';
import { reasonOf } from './reason.ts';
import { issuePath } from './standard-schema.ts';

/** A payload ready for the handler, or why there is none. `byUpgrade`: only a newer revision's rules refuse it. */
export type ReadPayload =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly byUpgrade: boolean; readonly reason: string };

/** Parses, upgrades and validates the payload of a delivery. Never throws. */
export async function readPayload(definition: AnyDefinition, job: Job, text: string): Promise<ReadPayload> {
  const { revision } = job.submission;
  const byUpgrade = revision < definition.revision;
  try {
    const upgraded = upgrade(definition, revision, JSON.parse(text) as unknown);
    const validated = await validate(definition, upgraded);
    return validated.ok ? validated : { ...validated, byUpgrade };
  } catch (error) {
    return { ok: false, byUpgrade, reason: reasonOf(error) };
  }
}

function upgrade(definition: AnyDefinition, from: number, payload: unknown): unknown {
  const { upgrade: upgrades = {} } = definition.options;
  let upgraded = payload;
  for (let revision = from; revision < definition.revision; revision++) {
    const step = upgrades[revision];
    // No step says: this revision reads what the one before it wrote; the schema tells whether that is so.
    if (step !== undefined) upgraded = step(upgraded);
  }
  return upgraded;
}

/** Validates a value by the definition's schema; the reason names the first issue with its path. */
export async function validate(
  definition: AnyDefinition,
  value: unknown,
): Promise<
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly reason: string; readonly path: string; readonly problem: string }
> {
  const { payload: schema } = definition.options;
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return { ok: true, payload: result.value };
  const issue = result.issues[0];
  const path = issue === undefined ? '$' : issuePath(issue);
  const problem = issue?.message ?? 'is refused by its schema';
  return { ok: false, reason: `${path}: ${problem}`, path, problem };
}
