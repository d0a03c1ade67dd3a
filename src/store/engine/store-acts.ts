/** Acts on the store itself: pausing, bounds, definitions and sealing, each recorded with who and why where it matters. */
import {
  compareDefinition,
  type DefinitionRecord,
  type DefinitionStanding,
  limits,
} from '../../core/index.ts';
import { isDigest } from '../../evidence/index.ts';
import { InvalidInputError } from '../errors.ts';
import { byRow, readKind, readList, readName, readOptions, readWhole } from '../input.ts';
import type { QueueRow } from '../session.ts';
import type { By, Registration } from '../store.ts';
import type { Engine } from './engine.ts';

export function pause(engine: Engine, queue: string, by: By): void {
  setQueue(engine, 'pause', queue, by, { paused: { ...byRow(by), tick: engine.now } });
}

export function resume(engine: Engine, queue: string, by: By): void {
  setQueue(engine, 'resume', queue, by, { paused: null });
}

export function configure(
  engine: Engine,
  queue: string,
  settings: { readonly maxUnresolved: number | null },
  by: By,
): void {
  const { maxUnresolved } = readOptions(settings, 'settings', ['maxUnresolved']);
  if (maxUnresolved !== null) readWhole(maxUnresolved, 'maxUnresolved', 0, limits.maxUnresolvedMax);
  setQueue(engine, 'configure', queue, by, { maxUnresolved });
}

function setQueue(
  engine: Engine,
  act: 'pause' | 'resume' | 'configure',
  name: string,
  by: By,
  columns: Partial<QueueRow>,
): void {
  const queue = readName(name, 'queue', limits.queueBytesMax);
  const noted = byRow(by);
  const row = engine.session.queue(queue) ?? { queue, maxUnresolved: null, paused: null };
  engine.session.setQueue({ ...row, ...columns });
  engine.session.addAct(act, noted, JSON.stringify({ queue, ...columns }));
}

/** Records a worker and its definitions, unless one of them changed without a new revision. */
export function register(engine: Engine, registration: Registration): readonly DefinitionStanding[] {
  const { worker: name, definitions: given } = readOptions(registration, 'registration', [
    'worker',
    'definitions',
  ]);
  const worker = readName(name, 'worker', limits.workerBytesMax);
  const definitions = readList(given, 'definitions', limits.definitionsMax).map(readDefinition);
  const standings = definitions.map((definition) =>
    compareDefinition(engine.session.definitions(definition.kind, definition.revision), definition),
  );
  if (standings.includes('changed')) return standings;
  for (const [index, definition] of definitions.entries()) {
    if (standings[index] !== 'same') engine.session.addDefinition(definition);
  }
  engine.session.seeWorker(worker, definitions);
  return standings;
}

function readDefinition(given: DefinitionRecord, index: number): DefinitionRecord {
  const field = `definitions[${index}]`;
  const definition = readOptions(given, field, ['kind', 'revision', 'schemaDigest', 'normalisation']);
  const kind = readKind(definition, field);
  const { schemaDigest } = definition;
  if (schemaDigest !== null && !isDigest(schemaDigest)) {
    throw new InvalidInputError(`${field}.schemaDigest`, 'must be 64 lower-case hexadecimal digits or null');
  }
  const normalisation = readName(definition.normalisation, `${field}.normalisation`, limits.kindBytesMax);
  return { ...kind, schemaDigest, normalisation };
}

export function seal(engine: Engine, movedTo: string, by: By): void {
  const noted = byRow(by);
  readName(movedTo, 'movedTo', limits.reasonBytesMax);
  engine.session.addAct('seal', noted, JSON.stringify({ movedTo }));
  engine.session.seal(movedTo);
}
