/** Enqueueing in memory: every member judged in order by `admit`, all in one commit, ids in the order asked. */
import {
  type Admission,
  type Asked,
  admit,
  descriptorText,
  type KeyHolder,
  limits,
} from '../../core/index.ts';
import { sha256Hex } from '../../evidence/index.ts';
import { InvalidInputError } from '../errors.ts';
import type { EnqueueVerdict } from '../store.ts';
import type { World } from './world.ts';

/** Thrown to roll an atomic batch back; carries what each member would have been told. */
class Withheld extends Error {
  readonly verdicts: readonly EnqueueVerdict[];

  constructor(verdicts: readonly EnqueueVerdict[]) {
    super('an atomic batch was refused');
    this.verdicts = verdicts;
  }
}

/** Admits requests that were read, in a transaction of its own. */
export function enqueue(world: World, asked: readonly Asked[], atomic: boolean): readonly EnqueueVerdict[] {
  try {
    return world.atomically(() => {
      const verdicts = admitAll(world, asked, world.now());
      if (atomic && verdicts.some((verdict) => verdict.status === 'refused')) throw new Withheld(verdicts);
      return verdicts;
    });
  } catch (error) {
    if (!(error instanceof Withheld)) throw error;
    return error.verdicts.map((verdict) => (verdict.status === 'created' ? { status: 'withheld' } : verdict));
  }
}

/** Admits requests inside the transaction that is open. */
export function admitAll(world: World, asked: readonly Asked[], now: number): readonly EnqueueVerdict[] {
  return asked.map((one, index) => admitOne(world, one, now, `jobs[${index}]`));
}

function admitOne(world: World, asked: Asked, now: number, field: string): EnqueueVerdict {
  const repeated = repeatedRequest(world, asked);
  if (repeated !== null) return repeated;
  const { queue } = asked;
  const maxUnresolved = world.tables.queues.get(queue)?.maxUnresolved ?? null;
  // An overdue job takes no capacity: at the bound, what time has ended is ended first.
  if (maxUnresolved !== null && world.index.unresolved(queue) >= maxUnresolved) {
    world.lapseOverdue(now, Number.MAX_SAFE_INTEGER);
  }
  const admission = admit(asked, {
    now,
    lineage: world.options.randomId(),
    sha256: sha256Hex,
    keyHolder: keyHolderOf(world, asked.idempotencyKey, now),
    unresolved: world.index.unresolved(queue),
    maxUnresolved,
  });
  return verdictOf(world, asked, admission, field);
}

function verdictOf(world: World, asked: Asked, admission: Admission, field: string): EnqueueVerdict {
  switch (admission.outcome) {
    case 'created': {
      const { job } = world.admit(admission.submission, asked.payload);
      return { status: 'created', id: job.id, job };
    }
    case 'duplicate': {
      const job = world.tables.rows.get(admission.jobId)?.job ?? null;
      return { status: 'duplicate', id: admission.jobId, job, ignored: admission.ignored };
    }
    case 'refused':
      return { status: 'refused', refused: admission.refused, id: admission.jobId };
    case 'overflow':
      throw new InvalidInputError(`${field}.${admission.field}`, `leads to a tick above ${limits.tickMax}`);
  }
}

/** A request asked again answers as it did the first time, as long as its job is stored. */
function repeatedRequest(world: World, asked: Asked): EnqueueVerdict | null {
  const id = asked.requestId === null ? undefined : world.tables.requests.get(asked.requestId);
  const row = id === undefined ? undefined : world.tables.rows.get(id);
  if (id === undefined || row === undefined) return null;
  const same = sha256Hex(descriptorText(asked)) === row.job.submission.descriptor;
  if (!same) return { status: 'refused', refused: 'conflict', id };
  return { status: 'created', id, job: row.job };
}

/** The job or tombstone under a key, unless its time is over: then the key is free again. */
function keyHolderOf(world: World, key: string | null, now: number): KeyHolder | null {
  const held = key === null ? undefined : world.tables.keys.get(key);
  if (held === undefined) return null;
  const row = world.tables.rows.get(held.jobId);
  if (row === undefined && held.keepUntil !== null && now >= held.keepUntil) return null;
  return { jobId: held.jobId, descriptor: held.descriptor, submission: row?.job.submission ?? null };
}
