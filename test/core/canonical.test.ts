import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  deepCopyJson,
  isWellFormedText,
  sanitizeText,
  utf8Length,
} from '../../src/core/canonical.ts';

const WIDE = { maxDepth: 64, maxBytes: 100_000 };

const textOf = (value: unknown, limits = WIDE): string => {
  const canonical = canonicalJson(value, limits);
  if (!canonical.ok) throw new Error(`${canonical.problem} at ${canonical.path}`);
  return canonical.text;
};

const refusalOf = (value: unknown, limits = WIDE): readonly [path: string, problem: string] => {
  const canonical = canonicalJson(value, limits);
  if (canonical.ok) throw new Error(`not refused: ${canonical.text}`);
  return [canonical.path, canonical.problem];
};

/** A bare object that keeps `value` from being judged at the root, so that the path is put to the test as well. */
const within = (value: unknown): unknown => ({ a: 1, items: [0, '', null, { when: value }] });
const WITHIN = '$.items[3].when';

const double = (bits: string): number =>
  new DataView(new BigUint64Array([BigInt(`0x${bits}`)]).buffer).getFloat64(0, true);

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
};

/** A function that must never be called: canonical JSON runs no code of the value it is given. */
const forbidden = (): never => {
  throw new Error('foreign code was run');
};

describe('canonical JSON text (RFC 8785)', () => {
  it('keys out of UTF-16 code unit order would give one value two digests', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    expect(textOf(value)).toBe(
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
        '"\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    );
  });

  it('insertion order, integer-like keys and nesting leave no trace in the text', () => {
    expect(textOf({ b: [{ d: 1, c: 2 }], a: {}, 10: 0, 9: 0, '': [] })).toBe(
      '{"":[],"10":0,"9":0,"a":{},"b":[{"c":2,"d":1}]}',
    );
  });

  it('strings are escaped in the one shortest way', () => {
    expect(textOf('\u20ac$\u000f\u000aA\'B"\\\\"/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
    expect(textOf('\b\t\n\f\r\u0000\u001f\u007f\u2028')).toBe('"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f\u2028"');
  });

  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('the double %s has the one serialisation %s', (bits, text) => {
    expect(textOf(double(bits))).toBe(text);
    expect(textOf([double(bits)])).toBe(`[${text}]`);
  });

  it('literals are literals, at the root as well', () => {
    expect([null, true, false, '', [], {}].map((value) => textOf(value))).toEqual([
      'null',
      'true',
      'false',
      '""',
      '[]',
      '{}',
    ]);
  });

  it('minus zero is zero, so equal numbers have equal texts', () => {
    expect(textOf({ at: [-0] })).toBe('{"at":[0]}');
  });

  it('NUL is kept, in a value and in a key', () => {
    expect(JSON.parse(textOf({ 'a\u0000b': 'c\u0000d' }))).toEqual({ 'a\u0000b': 'c\u0000d' });
  });

  it('an own key named __proto__ is data and reaches no prototype', () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true},"a":1,"constructor":2}');
    expect(textOf(value)).toBe('{"__proto__":{"admin":true},"a":1,"constructor":2}');
  });

  it('an object without prototype is as plain as any', () => {
    expect(textOf(Object.assign(Object.create(null), { b: 1, a: 2 }))).toBe('{"a":2,"b":1}');
  });

  it('what is shared without a cycle is written at each of its places', () => {
    const shared = { a: [] };
    expect(textOf([shared, { shared }, shared.a])).toBe('[{"a":[]},{"shared":{"a":[]}},[]]');
  });

  it('frozen values are read like others, and a proxy that hides nothing as what it stands for', () => {
    expect(textOf(Object.freeze({ b: Object.freeze([1]) }))).toBe('{"b":[1]}');
    expect(textOf(new Proxy({ b: new Proxy([1, 2], {}) }, {}))).toBe('{"b":[1,2]}');
  });

  it('no JSON value is lost or changed on the way there and back', () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: 'medium' }), (value) => {
        const parsed = JSON.parse(textOf(value)) as unknown;
        const expected: unknown = JSON.parse(JSON.stringify(value));
        expect(parsed).toEqual(expected);
        expect(textOf(parsed)).toBe(textOf(value));
        expect(Buffer.byteLength(textOf(value))).toBeLessThanOrEqual(WIDE.maxBytes);
      }),
      { numRuns: 500 },
    );
  });

  it('whatever it is given, it answers and never throws', () => {
    const wild = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: true,
      withNullPrototype: true,
      stringUnit: 'binary',
    });
    fc.assert(
      fc.property(wild, (value) => {
        const canonical = canonicalJson(value, WIDE);
        // What is accepted has to be JSON's own reading of the value, so nothing was dropped in silence.
        const [text, same] = canonical.ok ? [canonical.text, JSON.stringify(value)] : ['0', '0'];
        expect(JSON.parse(text)).toEqual(JSON.parse(same));
        expect(canonical.ok ? '$' : canonical.path).toMatch(/^\$/);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('what does not survive JSON is refused with its place', () => {
  class Account {
    readonly balance = 7;
  }
  class List extends Array {}

  it.each<[string, unknown, string]>([
    ['undefined', undefined, 'must not contain undefined'],
    ['a function', forbidden, 'must not contain a function'],
    ['a class', Account, 'must not contain a function'],
    ['a symbol', Symbol('s'), 'must not contain a symbol'],
    ['a bigint', 1n, 'must not contain a bigint'],
    ['NaN', Number.NaN, 'must not contain a number that is not finite'],
    ['Infinity', Number.POSITIVE_INFINITY, 'must not contain a number that is not finite'],
    ['-Infinity', Number.NEGATIVE_INFINITY, 'must not contain a number that is not finite'],
    ['a lone high surrogate', 'a\ud83d', 'must not contain a lone surrogate'],
    ['a lone low surrogate', '\ude00a', 'must not contain a lone surrogate'],
    ['surrogates in the wrong order', '\ude00\ud83d', 'must not contain a lone surrogate'],
    ['a Date', new Date(0), 'must not contain an instance of a class'],
    ['a Map', new Map([['a', 1]]), 'must not contain an instance of a class'],
    ['a Set', new Set([1]), 'must not contain an instance of a class'],
    ['a Buffer', Buffer.from('a'), 'must not contain an instance of a class'],
    ['a typed array', Uint8Array.of(1), 'must not contain an instance of a class'],
    ['an ArrayBuffer', new ArrayBuffer(1), 'must not contain an instance of a class'],
    ['an Error', new Error('a'), 'must not contain an instance of a class'],
    ['a RegExp', /a/, 'must not contain an instance of a class'],
    ['a boxed string', Object('a'), 'must not contain an instance of a class'],
    ['a promise', Promise.resolve(1), 'must not contain an instance of a class'],
    ['an instance', new Account(), 'must not contain an instance of a class'],
    ['an array of a class', List.of(1), 'must not contain an instance of a class'],
    [
      'an array without prototype',
      Object.setPrototypeOf([1], null),
      'must not contain an instance of a class',
    ],
    ['an heir of a plain object', Object.create({ a: 1 }), 'must not contain an instance of a class'],
  ])('%s is not taken for data', (_name, value, problem) => {
    expect(refusalOf(value)).toEqual(['$', problem]);
    expect(refusalOf(within(value))).toEqual([WITHIN, problem]);
    expect(refusalOf([value])).toEqual(['$[0]', problem]);
  });

  it('a toJSON of its own is a function like any other, and is not asked', () => {
    expect(refusalOf({ a: { toJSON: forbidden } })).toEqual(['$.a.toJSON', 'must not contain a function']);
  });

  it('a hole is not null, wherever it is', () => {
    const middle = Object.assign(new Array(3), { 0: 1, 2: 3 });
    expect(refusalOf({ a: middle })).toEqual(['$.a[1]', 'must not contain a hole']);
    expect(refusalOf(new Array(3))).toEqual(['$[0]', 'must not contain a hole']);
    const trailing = [1];
    trailing.length = 2;
    expect(refusalOf(trailing)).toEqual(['$[1]', 'must not contain a hole']);
  });

  it('a cycle is named where it closes, a long one too', () => {
    const own: Record<string, unknown> = {};
    own['self'] = own;
    expect(refusalOf(own)).toEqual(['$.self', 'must not contain a cycle']);
    const list: unknown[] = [];
    list.push({ back: [list] });
    expect(refusalOf(list)).toEqual(['$[0].back[0]', 'must not contain a cycle']);
  });

  it('an accessor is refused and not run', () => {
    const readable = Object.defineProperty({}, 'secret', { get: forbidden, enumerable: true });
    expect(refusalOf({ a: readable })).toEqual(['$.a.secret', 'must not contain an accessor']);
    const writable = Object.defineProperty({}, 'secret', { set: forbidden, enumerable: true });
    expect(refusalOf(writable)).toEqual(['$.secret', 'must not contain an accessor']);
    const item = Object.defineProperty([1, 2], 1, { get: forbidden, enumerable: true });
    expect(refusalOf(item)).toEqual(['$[1]', 'must not contain an accessor']);
  });

  it('an accessor stays one when a value was smuggled into every descriptor', () => {
    const value = Object.defineProperty({}, 'secret', { get: forbidden, enumerable: true });
    const polluted = Object.prototype as { value?: unknown };
    polluted.value = 'smuggled';
    const canonical = canonicalJson(value, WIDE);
    // Whatever else runs needs descriptors as well, so the prototype is cleaned before anything is expected.
    delete polluted.value;
    expect(canonical).toEqual({ ok: false, path: '$.secret', problem: 'must not contain an accessor' });
  });

  it('a property that is not enumerable would be dropped by whoever serialises again', () => {
    const hidden = 'must not contain a property that is not enumerable';
    expect(refusalOf(Object.defineProperty({ b: 1 }, 'a', { value: 1 }))).toEqual(['$.a', hidden]);
    expect(refusalOf(Object.defineProperty([0, 1], 1, { enumerable: false }))).toEqual(['$[1]', hidden]);
  });

  it('a symbol key is refused, and the place tells which', () => {
    expect(refusalOf({ a: { b: 1, [Symbol('tag')]: 1 } })).toEqual([
      '$.a["Symbol(tag)"]',
      'must not contain a symbol',
    ]);
    expect(refusalOf(Object.assign([1], { [Symbol.iterator]: 1 }))).toEqual([
      '$["Symbol(Symbol.iterator)"]',
      'must not contain an array with properties',
    ]);
  });

  it('a property put on an array would be lost', () => {
    const problem = 'must not contain an array with properties';
    expect(refusalOf({ a: Object.assign([1], { extra: 2 }) })).toEqual(['$.a.extra', problem]);
    expect(refusalOf(Object.assign([], { '-1': 2 }))).toEqual(['$["-1"]', problem]);
    // 2^32-1 looks like an index and is none.
    expect(refusalOf(Object.assign([1], { 4294967295: 2 }))).toEqual(['$["4294967295"]', problem]);
    // Even where a hole makes up for it in the count of keys.
    expect(refusalOf(Object.assign(new Array(1), { extra: 2 }))).toEqual(['$[0]', 'must not contain a hole']);
  });

  it('a key with a lone surrogate has no UTF-8 form, and its place is told in escapes', () => {
    expect(refusalOf({ a: { 'k\ud800': 1 } })).toEqual([
      '$.a["k\\ud800"]',
      'must not contain a lone surrogate',
    ]);
  });

  it.each([
    ['plain', '$.plain'],
    ['_$9', '$._$9'],
    ['9a', '$["9a"]'],
    ['', '$[""]'],
    ['a.b', '$["a.b"]'],
    ['a"]\n', '$["a\\"]\\n"]'],
    ['é', '$["é"]'],
    ['\u001b[31m', '$["\\u001b[31m"]'],
  ])('the key %j stands in a path so that it cannot be misread', (key, path) => {
    expect(refusalOf({ [key]: undefined })[0]).toBe(path);
  });

  it('a path stays short, however long and deep its keys', () => {
    expect(refusalOf({ ['k'.repeat(128)]: undefined })[0]).toBe(`$.${'k'.repeat(128)}`);
    expect(refusalOf({ ['k'.repeat(5_000)]: undefined })[0]).toBe(`$["${'k'.repeat(128)}"]`);
    let deep: unknown;
    for (let level = 0; level < 60; level++) deep = { ['key'.repeat(10)]: deep };
    const [path] = refusalOf(deep);
    expect(path).toMatch(/^\$\.keykey.*…$/);
    expect(utf8Length(path)).toBeLessThanOrEqual(1024);
  });

  it('the first culprit in the order of the text is named, whatever the order of insertion', () => {
    expect(refusalOf({ b: undefined, a: [1n, undefined] })[0]).toBe('$.a[0]');
    expect(refusalOf({ a: [1n, undefined], b: undefined })[0]).toBe('$.a[0]');
  });

  it('after a container is finished, the path leads on from its neighbour', () => {
    expect(refusalOf({ a: [[1], { x: 1 }], b: [{ y: 2 }, [undefined]] })[0]).toBe('$.b[1][0]');
  });
});

describe('proxies', () => {
  it.each<[string, unknown, string]>([
    ['getPrototypeOf', new Proxy({}, { getPrototypeOf: forbidden }), '$.p'],
    ['ownKeys', new Proxy({}, { ownKeys: forbidden }), '$.p'],
    ['getOwnPropertyDescriptor', new Proxy({ a: 1 }, { getOwnPropertyDescriptor: forbidden }), '$.p.a'],
    ['ownKeys of an array', new Proxy([1], { ownKeys: forbidden }), '$.p'],
    ['length', new Proxy([1], { get: forbidden }), '$.p'],
  ])('a trap that throws is a refusal: %s', (_name, proxy, path) => {
    expect(refusalOf({ p: proxy })).toEqual([path, 'must not contain what cannot be read']);
  });

  it('a revoked proxy is a refusal', () => {
    const { proxy, revoke } = Proxy.revocable([], {});
    revoke();
    expect(refusalOf([proxy])).toEqual(['$[0]', 'must not contain what cannot be read']);
  });

  it('a trap may lie about keys and lengths, yet what comes out is JSON or a refusal', () => {
    const ghost = new Proxy({}, { ownKeys: () => ['a'] });
    expect(refusalOf(ghost)).toEqual(['$.a', 'must not contain a hole']);
    for (const length of [Number.NaN, -1, 1.5, 3, 2 ** 60, '2', 1n, null, {}]) {
      const list = new Proxy([1], { get: (): unknown => length });
      const canonical = canonicalJson(list, WIDE);
      expect(['[]', '[1]']).toContain(canonical.ok ? canonical.text : '[]');
    }
  });

  it('the get trap is not asked for members: it could answer otherwise than the descriptor', () => {
    const get = (): never => forbidden();
    expect(textOf(new Proxy({ a: { b: 1 } }, { get }))).toBe('{"a":{"b":1}}');
  });

  it('a bottomless proxy meets the depth limit', () => {
    const bottomless: object = new Proxy(
      {},
      {
        ownKeys: () => ['a'],
        getOwnPropertyDescriptor: () => ({ value: bottomless, enumerable: true, configurable: true }),
      },
    );
    // The same object again is a cycle; one made anew each time can only be stopped by the limit.
    expect(refusalOf(bottomless)[1]).toBe('must not contain a cycle');
    const endless = (): object =>
      new Proxy(
        {},
        {
          ownKeys: () => ['a'],
          getOwnPropertyDescriptor: () => ({ value: endless(), enumerable: true, configurable: true }),
        },
      );
    expect(refusalOf(endless(), { maxDepth: 5, maxBytes: 1_000 })).toEqual([
      '$.a.a.a.a.a',
      'must not nest deeper than 5',
    ]);
  });
});

describe('limits', () => {
  it('the depth limit admits as many levels as it says and not one more', () => {
    const limits = { maxDepth: 3, maxBytes: 1_000 };
    expect(textOf(nested(3), limits)).toBe('[{"a":[1]}]');
    expect(refusalOf(nested(4), limits)).toEqual(['$.a[0].a', 'must not nest deeper than 3']);
    expect(textOf(1, { maxDepth: 0, maxBytes: 10 })).toBe('1');
    expect(refusalOf([], { maxDepth: 0, maxBytes: 10 })).toEqual(['$', 'must not nest deeper than 0']);
  });

  it('siblings do not add up to depth', () => {
    expect(textOf([[[]], [[]], [{}]], { maxDepth: 3, maxBytes: 100 })).toBe('[[[]],[[]],[{}]]');
  });

  it('nesting far beyond the stack of the engine is written where the limit admits it, and refused where not', () => {
    const deep = nested(200_000);
    const open = canonicalJson(deep, { maxDepth: 200_000, maxBytes: 10_000_000 });
    expect(open.ok && open.text.length).toBe(200_000 * 4 + 1);
    expect(refusalOf(deep)[1]).toBe('must not nest deeper than 64');
  });

  it.each<[unknown, number]>([
    [null, 4],
    ['', 2],
    ['a', 3],
    ['é', 4],
    ['€', 5],
    ['😀', 6],
    ['\n', 4],
    ['\u0000', 8],
    [{ '€': '😀' }, 14],
    [[1, 2, 3], 7],
    [[], 2],
    [{}, 2],
    [{ a: {}, b: [] }, 15],
    [[[[]]], 6],
    [-1.5, 4],
  ])('%j takes %i bytes: so many are enough and one less is refused', (value, size) => {
    const maxDepth = 8;
    expect(utf8Length(textOf(value, { maxDepth, maxBytes: size }))).toBe(size);
    for (let maxBytes = 0; maxBytes < size; maxBytes++) {
      expect(refusalOf(value, { maxDepth, maxBytes })[1]).toBe(
        `must not be larger than ${maxBytes} bytes as JSON`,
      );
    }
  });

  it('every limit below the size of a text is refused and every other one is not', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.nat(80), (value, maxBytes) => {
        const fits = Buffer.byteLength(textOf(value)) <= maxBytes;
        expect(canonicalJson(value, { maxDepth: 64, maxBytes }).ok).toBe(fits);
      }),
      { numRuns: 500 },
    );
  });

  it('the place where a text grew too large is told', () => {
    const limits = { maxDepth: 8, maxBytes: 20 };
    expect(refusalOf({ a: 1, b: ['x', 'too long for it'] }, limits)[0]).toBe('$.b[1]');
    expect(refusalOf({ a: 1, ['too long for the rest']: 1 }, limits)[0]).toBe('$["too long for the rest"]');
    // All members fit, and only the closing brace does not.
    expect(refusalOf({ a: [1, 2, 3, 4, 5, 6] }, { maxDepth: 8, maxBytes: 18 })[0]).toBe('$');
  });

  it('what is too large is refused before it is walked through', () => {
    const limits = { maxDepth: 8, maxBytes: 1_000 };
    const tooLarge = 'must not be larger than 1000 bytes as JSON';
    const length = 2 ** 32 - 1;
    expect(refusalOf([new Array(length)], limits)).toEqual(['$[0]', tooLarge]);
    // Reading the string's units one by one, or listing the array's keys, would run into these traps.
    const list = new Proxy(new Array(600).fill(0), { ownKeys: forbidden });
    expect(refusalOf(list, limits)).toEqual(['$', tooLarge]);
    const members = new Proxy(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, n])), {
      getOwnPropertyDescriptor: forbidden,
    });
    expect(refusalOf(members, limits)).toEqual(['$', tooLarge]);
    expect(refusalOf('\ud800'.repeat(1_001), limits)).toEqual(['$', tooLarge]);
  });

  it('a value shared over and over cannot grow past the limit', () => {
    let value: unknown = 'x';
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(refusalOf(value, { maxDepth: 64, maxBytes: 10_000 })[1]).toBe(
      'must not be larger than 10000 bytes as JSON',
    );
  });

  it('a limit that is none admits nothing', () => {
    for (const none of [Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY]) {
      expect(refusalOf(1, { maxDepth: 8, maxBytes: none })[1]).toBe(
        'must not be larger than 0 bytes as JSON',
      );
      expect(refusalOf([], { maxDepth: none, maxBytes: 8 })[1]).toBe('must not nest deeper than 0');
    }
  });
});

describe('copies', () => {
  it('an edit of the copy never reaches the original, nor one place of the copy another', () => {
    const shared = { n: [1] };
    const original = { a: shared, b: shared, c: null, d: 'x' };
    const copy = deepCopyJson(original);
    expect(copy).toEqual(original);
    copy.a.n.push(2);
    expect(copy.b.n).toEqual([1]);
    expect(shared.n).toEqual([1]);
  });

  it('an own __proto__ stays an own property and sets no prototype', () => {
    const original = JSON.parse('[{"__proto__":{"admin":true},"a":{"__proto__":null}}]') as [object];
    const [copy] = deepCopyJson(original);
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true},"a":{"__proto__":null}}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect((copy as { admin?: boolean }).admin).toBeUndefined();
  });

  it('every JSON value equals its copy', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(textOf(deepCopyJson(value))).toBe(textOf(value));
      }),
    );
  });
});

describe('text', () => {
  const units = fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
  });
  const pairs = fc.string({
    unit: fc.constantFrom('a', 'é', '€', '😀', '\ud83d', '\ude00', '\n', '\t', '\u0000', '\u007f'),
  });
  const anyText = fc.oneof(units, pairs, fc.string({ unit: 'binary' }));

  it('bytes are counted as an encoder writes them, lone surrogates included', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
      { numRuns: 500 },
    );
    expect(
      ['', '\u007f', '\u0080', '\u07ff', '\u0800', '\uffff', '\u{10000}', '😀', '\ud83d'].map(utf8Length),
    ).toEqual([0, 1, 2, 2, 3, 3, 4, 4, 3]);
  });

  it('well formed is what comes back equal from UTF-8', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(isWellFormedText(text)).toBe(Buffer.from(text).toString() === text);
      }),
      { numRuns: 500 },
    );
  });

  it('control characters and lone surrogates do not get through, line feed and tab do', () => {
    const controls = Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code)).join('');
    expect(sanitizeText(controls, 1_000)).toBe(`${'\ufffd'.repeat(9)}\t\n${'\ufffd'.repeat(21)}`);
    expect(sanitizeText('a\ud83db\ude00c😀', 1_000)).toBe('a\ufffdb\ufffdc😀');
    expect(sanitizeText('é\u007f\u0085€\u009b', 1_000)).toBe('é\ufffd\ufffd€\ufffd');
  });

  it.each([
    ['abcdef', 6, 'abcdef'],
    ['abcdefg', 6, 'abc…'],
    ['abcd', 3, '…'],
    ['abcd', 4, 'abcd'],
    ['ééé', 6, 'ééé'],
    ['ééé', 5, 'é…'],
    ['éééé', 6, 'é…'],
    ['a😀b', 6, 'a😀b'],
    ['a😀bc', 6, 'a…'],
    ['😀😀', 7, '😀…'],
    ['😀😀', 6, '…'],
    // A replacement is longer than what it replaces, and that counts.
    ['\u0000\u0000', 6, '\ufffd\ufffd'],
    ['\u0000\u0000', 5, '…'],
    ['', 0, ''],
    ['abc', 2, ''],
    ['ab', 2, 'ab'],
    ['a', 0, ''],
    ['a', -1, ''],
    ['a', Number.NaN, ''],
    ['a', Number.POSITIVE_INFINITY, ''],
  ])('%j cut to %d bytes is %j', (text, maxBytes, cut) => {
    expect(sanitizeText(text, maxBytes)).toBe(cut);
  });

  it('no cut exceeds its bound, splits a code point or loses more than it must', () => {
    const longestCut = (whole: string, maxBytes: number): string => {
      if (Buffer.byteLength(whole) <= maxBytes) return whole;
      if (maxBytes < 3) return '';
      const prefixes = Array.from(whole).map((_, count, all) => all.slice(0, count).join(''));
      return `${prefixes.findLast((prefix) => Buffer.byteLength(prefix) <= maxBytes - 3)}…`;
    };
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, maxBytes) => {
        const cut = sanitizeText(text, maxBytes);
        expect(cut).toBe(longestCut(sanitizeText(text, 1_000), maxBytes));
        expect(isWellFormedText(cut)).toBe(true);
        expect(sanitizeText(cut, maxBytes)).toBe(cut);
      }),
      { numRuns: 1_000 },
    );
  });
});
