/** Ways to spoil a snapshot: rows dropped, doubled or swapped, leaves changed, types and lengths that cannot be. */
import fc from 'fast-check';

/** Picks a section, a node in it, and what is done to the node. */
export interface Mutation {
  readonly section: number;
  readonly node: number;
  readonly way: number;
  readonly other: number;
}

export const mutation: fc.Arbitrary<Mutation> = fc.record({
  section: fc.nat({ max: 999 }),
  node: fc.nat({ max: 99_999 }),
  way: fc.nat({ max: 999 }),
  other: fc.nat({ max: 999 }),
});

/** Sections that hold most of what can go wrong, and are picked more often. */
const HEAVY = ['jobs', 'jobs', 'jobs', 'jobs', 'effects', 'effects', 'keys', 'counters'];

type Box = unknown[] | Record<string, unknown>;
/** A place in the tree: the object or list, and the key or index in it. */
interface Place {
  readonly box: Box;
  readonly key: string;
}

function placesIn(value: unknown): readonly Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const box = value as Box;
  return Object.entries(box).flatMap(([key, inner]) => [{ box, key }, ...placesIn(inner)]);
}

/** Spoils a deep copy in one place; null when there is no such place. */
export function mutate(snapshot: object, { section, node, way, other }: Mutation): object | null {
  const copy = structuredClone(snapshot) as Record<string, unknown>;
  const name = pickFrom([...Object.keys(copy), ...HEAVY], section) ?? '';
  const places = [{ box: copy, key: name }, ...placesIn(copy[name])];
  const place = pickFrom(places, node);
  if (place === undefined) return null;
  const ways = waysOf(valueAt(place), other);
  pickFrom(ways, way)?.(place);
  return copy;
}

function pickFrom<Member>(members: readonly Member[], pick: number): Member | undefined {
  return members[pick % members.length];
}

function valueAt({ box, key }: Place): unknown {
  return Array.isArray(box) ? box[Number(key)] : Object.getOwnPropertyDescriptor(box, key)?.value;
}

function set({ box, key }: Place, value: unknown): void {
  if (Array.isArray(box)) box[Number(key)] = value;
  else Object.defineProperty(box, key, { value, configurable: true, enumerable: true, writable: true });
}

function drop({ box, key }: Place): void {
  if (Array.isArray(box)) box.splice(Number(key), 1);
  else delete box[key];
}

type Way = (place: Place) => void;

/** Everything that may be done to a value of this type. */
function waysOf(value: unknown, other: number): readonly Way[] {
  const to =
    (changed: unknown): Way =>
    (place) =>
      set(place, changed);
  const any: readonly Way[] = [drop, to(null), to([]), to({}), to(1), to('x'), to(true), to(undefined)];
  if (typeof value === 'number') {
    return [
      ...any,
      to(value + 1),
      to(value - 1),
      to(0),
      to(-1),
      to(1.5),
      to(2 ** 53),
      to(Number.NaN),
      to(String(value)),
    ];
  }
  if (typeof value === 'string') {
    const cut = value.slice(0, other % (value.length + 1));
    return [
      ...any,
      to(cut),
      to(`${value}x`),
      to(''),
      to(value.toUpperCase()),
      to(`${value}\ud800`),
      to(flipped(value, other)),
      to('A'.repeat(2_000_000)),
    ];
  }
  if (typeof value === 'boolean') return [...any, to(!value), to(!value)];
  if (Array.isArray(value)) return [...any, ...listWays(value, other)];
  if (typeof value === 'object' && value !== null) {
    return [
      ...any,
      to({ ...value, extra: 1 }),
      to(JSON.parse(withProto(value)) as unknown),
      to(Object.create(value)),
    ];
  }
  return any;
}

function listWays(list: readonly unknown[], other: number): readonly Way[] {
  if (list.length === 0) return [(place) => set(place, [null]), (place) => set(place, [{}])];
  const index = other % list.length;
  const last = list.length - 1;
  const swapped = list.map((item, at) => (at === index ? list[last] : at === last ? list[index] : item));
  return [
    (place) =>
      set(
        place,
        list.filter((_item, at) => at !== index),
      ),
    (place) => set(place, [...list, structuredClone(list[index])]),
    (place) => set(place, swapped),
    (place) => set(place, [...list, null]),
    (place) => set(place, Object.assign([...list], { extra: 1 })),
    // A list that says it is longer than it is.
    (place) => set(place, Object.assign([...list], { length: 2 ** 31 })),
  ];
}

function flipped(text: string, other: number): string {
  if (text === '') return 'f';
  const at = other % text.length;
  return `${text.slice(0, at)}${text[at] === 'a' ? 'b' : 'a'}${text.slice(at + 1)}`;
}

/** The same object with a key that would reach its prototype if it were assigned. */
function withProto(value: object): string {
  const text = JSON.stringify(value);
  const proto = '"__proto__":{"polluted":true}';
  return text === '{}' ? `{${proto}}` : `{${proto},${text.slice(1)}`;
}
