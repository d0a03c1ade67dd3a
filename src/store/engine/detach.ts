/** Copies what leaves a store, so that nobody outside can edit what it keeps. */

/**
 * A copy of plain data: objects, arrays, bytes and scalars. Made for answers, which are made of nothing else; it costs a
 * few microseconds a job, where a structured clone costs ten times that.
 */
export function detach<Value>(value: Value): Value {
  return copy(value) as Value;
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  if (value instanceof Uint8Array) return value.slice();
  const copied: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    // A name like __proto__ must stay data.
    if (key === '__proto__') Object.defineProperty(copied, key, own(copy(Reflect.get(value, key))));
    else copied[key] = copy(Reflect.get(value, key));
  }
  return copied;
}

function own(value: unknown): PropertyDescriptor {
  return { value, writable: true, enumerable: true, configurable: true };
}
