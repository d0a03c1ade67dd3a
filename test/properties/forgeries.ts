/** Snapshots that somebody made who wants an effect skipped or a token given twice, and hands that edit what they gave. */
import { STATE } from '../../src/core/index.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';

type Mark = Snapshot['effects'][number];

/** Marks that nobody can have made: of a job that is here and says nothing of it, or of one that never was. */
export function forgedMarks(snapshot: Snapshot): readonly Snapshot[] {
  const forged: Snapshot[] = [];
  const withEffects = (effects: readonly Mark[]): void => {
    forged.push({ ...snapshot, effects });
  };
  snapshot.effects.forEach((mark, index) => {
    const changed = (change: Partial<Mark>): void =>
      withEffects(snapshot.effects.map((one, at) => (at === index ? { ...one, ...change } : one)));
    if (!snapshot.jobs.some(({ job }) => job.id === mark.jobId)) return;
    changed({ key: `${mark.key}-forged` });
    changed({ result: '{"forged":true}', done: true });
    changed({ type: mark.type === 'commit' ? 'step' : 'commit' });
    withEffects(snapshot.effects.filter((one) => one !== mark));
  });
  const { effects } = invented(snapshot, null);
  return effects === snapshot.effects ? forged : [...forged, { ...snapshot, effects }];
}

/** The snapshot with a mark of an effect that a running job never committed, in the name of `jobId` or of that job. */
export function invented(snapshot: Snapshot, jobId: number | null): Snapshot {
  const running = snapshot.jobs.find(({ job }) => job.state === STATE.RUNNING)?.job;
  if (running === undefined) return snapshot;
  const { id, token, occurrence, submission } = running;
  const { lineage, descriptor } = submission;
  const done = { type: 'commit', done: true, result: 'null' } as const;
  const mark = {
    ...done,
    lineage,
    occurrence,
    key: 'never-committed',
    descriptor,
    token,
    jobId: jobId ?? id,
  };
  return { ...snapshot, effects: [...snapshot.effects, mark] };
}

/** Counters at or below something that was given out. */
export function loweredCounters(snapshot: Snapshot): readonly Snapshot[] {
  const { counters, jobs } = snapshot;
  const top = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0);
  const id = top(jobs.map(({ job }) => job.id));
  const token = top(jobs.map(({ job }) => job.token));
  const lowered = [{ nextId: id }, { nextToken: token }, { nextId: 1 }, { nextToken: 1 }];
  const given = token > 0 && id > 0 ? lowered : [];
  return given.map((change) => ({ ...snapshot, counters: { ...counters, ...change } }));
}

/** Edits everything in an object that somebody else may still hold. */
export function vandalise(box: object): void {
  if (Array.isArray(box)) box.push('vandal');
  for (const [key, value] of Object.entries(box)) {
    if (typeof value === 'object' && value !== null) vandalise(value as object);
    else Object.assign(box, { [key]: 'vandal' });
  }
  if (!Array.isArray(box)) Object.assign(box, { vandal: 1 });
}
