/** The vectors of the reference page, made by the code: what another implementation must reproduce to the byte. */
import type { Command } from '../../src/core/commands.ts';
import { decide } from '../../src/core/decide.ts';
import type { Fact } from '../../src/core/facts.ts';
import { initialJob, type Job, type Submission } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import {
  appendFacts,
  type Chain,
  closedAfter,
  decodeEntry,
  encodeEntry,
  entriesOf,
  factsOf,
  genesisRoot,
  makeBundle,
  newChain,
  nextRoot,
  packLedger,
  sha256Hex,
  submissionText,
} from '../../src/evidence/index.ts';
import { SAMPLES } from './facts.ts';
import { PAYLOAD, submissionOf } from './histories.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** One step of a story: a command at a tick, or only the tick. */
type Step = readonly [tick: number, command: Command | null];

const report = {
  type: 'settle',
  delayMs: null,
  jitterMs: 0,
  until: null,
  neverCalled: false,
  byUpgrade: false,
} as const;
const ada = { actor: 'ada', reason: sha256Hex('asked the provider'), version: null } as const;

const SUBMISSIONS: Readonly<Record<string, Submission>> = {
  plain: submissionOf(),
  'every optional field': submissionOf({
    queue: 'Zahlungen €',
    orderingKey: 'alice "quoted" \\ 😀',
    idempotencyKey: 'invoice-17',
    requestId: 'request-1',
    startAt: 5_000,
    deadline: 9_007_199_254_740_991,
    priority: -1_000,
    idempotent: false,
    requiresEffect: 'ledger-row',
    reconciles: true,
    compensates: true,
    inherited: {
      fromId: 3,
      occurrence: 0,
      requiredEffectCommitted: true,
      openSteps: [{ key: 'charge', idempotent: false }],
    },
  }),
  recurring: submissionOf({ recurrence: { intervalMs: 60_000, maxOccurrences: 3, maxCatchUp: 2 } }),
  unsafe: submissionOf({ idempotent: false }),
};

const STORIES: readonly { readonly name: string; readonly of: string; readonly steps: readonly Step[] }[] = [
  {
    name: 'a failed attempt, a retry, and a delivery that is still open',
    of: 'plain',
    steps: [
      [1_000, { type: 'claim', token: 17, worker: 'w-1', leaseMs: 30_000 }],
      [1_000, { type: 'begin', token: 17 }],
      [
        1_200,
        { ...report, token: 17, worker: 'w-1', outcome: 'retryable', digest: sha256Hex('busy'), jitterMs: 3 },
      ],
      [1_213, { type: 'claim', token: 18, worker: 'w-2', leaseMs: 30_000 }],
      [1_214, { type: 'begin', token: 18 }],
    ],
  },
  {
    name: 'a lost attempt with an open step, a late report, and a decision',
    of: 'unsafe',
    steps: [
      [1_000, { type: 'claim', token: 17, worker: 'w-1', leaseMs: 30_000 }],
      [1_000, { type: 'begin', token: 17 }],
      [
        1_001,
        { type: 'begin_step', token: 17, key: 'charge', descriptor: sha256Hex('700'), idempotent: false },
      ],
      [1_002, { type: 'extend', token: 17, extendMs: 30_000 }],
      [31_002, null],
      [31_900, { ...report, token: 17, worker: 'w-1', outcome: 'retryable', digest: sha256Hex('timeout') }],
      [40_000, { type: 'cancel', actor: 'bob', reason: null, version: null }],
      [50_000, { type: 'reconcile', token: 17, decision: 'succeeded', by: 'person', steps: [], ...ada }],
    ],
  },
  {
    name: 'an effect, a recurrence, and a clock that had run ahead',
    of: 'recurring',
    steps: [
      [2_000, { type: 'claim', token: 16, worker: 'w-1', leaseMs: 30_000 }],
      [2_000, { type: 'begin', token: 16 }],
      [
        2_001,
        {
          type: 'commit_effect',
          token: 16,
          key: 'row',
          descriptor: sha256Hex('7'),
          result: sha256Hex('null'),
        },
      ],
      [2_002, { ...report, token: 16, worker: 'w-1', outcome: 'succeeded', digest: sha256Hex('null') }],
      [90_000, { type: 'claim', token: 32, worker: 'w-1', leaseMs: 30_000 }],
      [61_000, { type: 'begin', token: 32 }],
      [61_500, { type: 'cancel', actor: 'bob', reason: null, version: null }],
      [62_000, { ...report, token: 32, worker: 'w-1', outcome: 'uncertain', digest: sha256Hex('unknown') }],
    ],
  },
];

function tell(submission: Submission, steps: readonly Step[]): { readonly job: Job; readonly chain: Chain } {
  const context = {
    laneHead: true,
    queuePaused: false,
    claimer: { revision: 1, idempotent: true },
    effect: null,
  };
  let job = initialJob(7, submission);
  let chain = newChain(submission);
  for (const [tick, command] of steps) {
    const decided = command === null ? lapse(job, tick) : decide(job, command, context, tick);
    job = decided.job;
    chain = appendFacts(chain, decided.facts);
  }
  return { job, chain };
}

function storyVector(name: string, of: string, steps: readonly Step[]): unknown {
  const submission = submissionNamed(of);
  const { job, chain } = tell(submission, steps);
  const facts = factsOf(chain);
  let root = genesisRoot(submission);
  const entries = entriesOf(chain).map((entry, index) => {
    root = nextRoot(root, entry);
    return { fact: facts[index], entry: hex(entry), open: index >= chain.entries.length, root };
  });
  return {
    name,
    submission: of,
    genesis: genesisRoot(submission),
    entries,
    root: chain.root,
    rootClosed: closedAfter(chain).root,
    ledger: hex(packLedger(chain.entries)),
    job: { ...job, submission: undefined },
  };
}

function submissionNamed(name: string): Submission {
  const submission = SUBMISSIONS[name];
  if (submission === undefined) throw new Error(`no submission ${name}`);
  return submission;
}

/** Entries that must be refused: what was done to a good one, and why it is none. */
function refused(): unknown[] {
  const claimed = encodeEntry(SAMPLES.claimed);
  const settled = encodeEntry(SAMPLES.settled);
  const patched = (entry: Uint8Array, at: number, ...bytes: number[]): Uint8Array => {
    const copy = new Uint8Array(entry);
    copy.set(bytes, at);
    return copy;
  };
  const cases: [string, Uint8Array][] = [
    ['no bytes', new Uint8Array()],
    ['tag 0', patched(claimed, 0, 0)],
    ['tag 14', patched(claimed, 0, 14)],
    ['a tick of 2^53', patched(claimed, 1, 0, 0, 0, 0, 0, 0, 32, 0)],
    ['presence byte 2', patched(claimed, 9, 2)],
    ['state 5', patched(claimed, 18, 5)],
    ['state 10', patched(claimed, 18, 10)],
    ['a name longer than its bound', patched(claimed, 19, 129, 0)],
    ['a name longer than what is left', patched(claimed, 19, 128, 0)],
    ['an empty name', patched(claimed, 19, 0, 0)],
    ['a control character', patched(claimed, 21, 27)],
    ['malformed UTF-8', patched(claimed, 21, 0xff)],
    ['an overlong encoding', patched(claimed, 21, 0xc1, 0x81)],
    ['token 0', patched(claimed, 24, 0)],
    ['boolean 2', patched(claimed, 36, 2)],
    ['unknown outcome', patched(settled, 32, 7)],
    ['cut short', settled.subarray(0, settled.length - 1)],
    ['a byte behind the end', Uint8Array.of(...settled, 0)],
  ];
  return cases.map(([name, entry]) => {
    const decoded = decodeEntry(entry);
    if (decoded.ok) throw new Error(`${name} is accepted`);
    return { name, entry: hex(entry), field: decoded.field, problem: decoded.problem };
  });
}

/** A whole bundle as text, of the story that needs a person. */
function bundleText(): string {
  const [, story] = STORIES;
  if (story === undefined) throw new Error('no story');
  const { job, chain } = tell(submissionNamed(story.of), story.steps);
  return JSON.stringify(
    makeBundle({
      job,
      payload: PAYLOAD,
      chain,
      texts: Object.fromEntries(['timeout', 'asked the provider'].map((text) => [sha256Hex(text), text])),
      testimony: [
        { tick: 60_000, worker: 'w-1', token: 17, outcome: 'succeeded', digest: sha256Hex('too late') },
      ],
    }),
  );
}

/** All vectors as plain JSON. */
export function makeVectors(): unknown {
  const facts: readonly Fact[] = Object.values(SAMPLES);
  const vectors = {
    about: 'Vectors of custody/evidence: see docs/reference/evidence.md. Byte strings are hexadecimal.',
    payload: PAYLOAD,
    submissions: Object.entries(SUBMISSIONS).map(([name, submission]) => ({
      name,
      submission,
      canonical: submissionText(submission),
      genesis: genesisRoot(submission),
    })),
    entries: facts.map((fact) => ({ fact, entry: hex(encodeEntry(fact)) })),
    refused: refused(),
    chains: STORIES.map(({ name, of, steps }) => storyVector(name, of, steps)),
    bundle: bundleText(),
  };
  return JSON.parse(JSON.stringify(vectors));
}
