/** Effects: one application per lineage, occurrence and key, and nothing of a transaction that did not commit. */
import { isDeepStrictEqual } from 'node:util';
import type { Claims } from './claims.ts';
import type { Memory } from './memory-of-history.ts';
import type { Marked, Step, TransactCall } from './step.ts';

export function auditEffects(step: Step, memory: Memory, claims: Claims): void {
  const { call } = step;
  if (call.verb === 'transact') auditTransaction(step, call, memory, claims);
}

function auditTransaction(step: Step, call: TransactCall, memory: Memory, claims: Claims): void {
  const committed = call.answer !== 'threw' && call.answer.ok;
  if (!call.entered) {
    claims.hold(
      'rollback',
      !committed && call.marked.length === 0,
      () => 'a transaction committed without having run',
    );
    return;
  }
  const { balance } = memory;
  if (balance !== null) {
    claims.hold(
      'effectOnce',
      call.balance === balance,
      () => `the account has ${call.balance} applications, not ${balance}`,
    );
  }
  claims.hold('clock', call.now === step.now, () => `the transaction ran at ${call.now}, not at ${step.now}`);
  const before = step.before.get(call.holder.id)?.job;
  const lineage = before?.submission.lineage ?? '';
  // Marks of this transaction alone, until it commits.
  const marks = new Map(memory.effects);
  let applied = 0;
  for (const mark of call.marked) {
    const name = JSON.stringify([lineage, before?.occurrence, mark.key]);
    auditMark(name, mark, marks.get(name), claims);
    if (mark.ran) applied += 1;
    if (mark.type === 'commit') marks.set(name, JSON.stringify([mark.content, mark.result]));
  }
  memory.balance = call.balance === null ? null : call.balance + (committed ? applied : 0);
  if (!committed) {
    const after = step.after.get(call.holder.id)?.job;
    const added = [...step.after.keys()].filter((id) => !step.before.has(id));
    claims.hold(
      'rollback',
      added.length === 0,
      () => `jobs ${added.join()} were admitted by a transaction that was rolled back`,
    );
    claims.hold(
      'rollback',
      isDeepStrictEqual(after, before),
      () => `job ${call.holder.id} was moved by a transaction that was rolled back`,
    );
    return;
  }
  for (const [name, result] of marks) memory.effects.set(name, result);
}

/** An effect that is known answers what it answered first, and its `apply` does not run. */
function auditMark(name: string, mark: Marked, known: string | undefined, claims: Claims): void {
  if (mark.type === 'step') return;
  claims.hold(
    'effectOnce',
    mark.ran === (known === undefined),
    () => `${name}: apply ${mark.ran ? 'ran again' : 'did not run'}`,
  );
  claims.hold(
    'effectOnce',
    mark.known !== mark.ran,
    () => `${name}: called ${mark.known ? 'a duplicate' : 'fresh'}`,
  );
  if (known === undefined) return;
  const told = JSON.stringify([mark.content, mark.result]);
  claims.hold('effectOnce', told === known, () => `${name}: told ${told}, first ${known}`);
}
