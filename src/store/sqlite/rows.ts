/** Jobs as SQLite rows and back: what a column does not say is derived, never guessed, and both ways are exact. */
import {
  type Answered,
  type Cause,
  initialJob,
  type Job,
  type Lease,
  type OpenStep,
  type Outcome,
  STATE,
  type State,
  type Submission,
  stateIsTerminal,
} from '../../core/index.ts';
import type { OpenDelivery } from '../../evidence/index.ts';
import type { Noted, Row } from '../session.ts';
import type { SqlRow, SqlValue } from './driver.ts';

/** A row as loaded: what its columns say, and where its closed entries are. */
export interface Loaded {
  readonly row: Row;
  /** Packed entries that are in the row itself; older ones are in `pages` pages. */
  readonly ledger: Uint8Array;
  readonly pages: number;
}

/** What few jobs have, as one JSON column; null when all of it is as a fresh job's. */
interface Rare {
  readonly testified: Answered | null;
  readonly testimonies: number;
  readonly openSteps: readonly OpenStep[];
  readonly requiredEffectCommitted: boolean;
  readonly marked: boolean;
}

const NOTHING_RARE: Rare = {
  testified: null,
  testimonies: 0,
  openSteps: [],
  requiredEffectCommitted: false,
  marked: false,
};

/** Reads columns by name and type; a value of another type is damage and says where. */
export class Columns {
  readonly #row: SqlRow;

  constructor(row: SqlRow) {
    this.#row = row;
  }

  number(name: string): number {
    const value = this.#row[name];
    if (typeof value === 'number') return value;
    throw new Error(`column ${name} holds no number`);
  }

  numberOrNull(name: string): number | null {
    return this.#row[name] === null ? null : this.number(name);
  }

  text(name: string): string {
    const value = this.#row[name];
    if (typeof value === 'string') return value;
    throw new Error(`column ${name} holds no text`);
  }

  textOrNull(name: string): string | null {
    return this.#row[name] === null ? null : this.text(name);
  }

  bytes(name: string): Uint8Array {
    const value = this.#row[name];
    if (value instanceof Uint8Array) return value;
    throw new Error(`column ${name} holds no bytes`);
  }

  flag(name: string): boolean {
    return this.number(name) === 1;
  }
}

/** The columns live and settled share. */
function commonJob(columns: Columns, submission: Submission): Job {
  const id = columns.number('id');
  const rareText = columns.textOrNull('rare');
  const rare = rareText === null ? NOTHING_RARE : (JSON.parse(rareText) as Rare);
  return {
    ...initialJob(id, submission),
    ...rare,
    state: columns.number('state') as State,
    version: columns.number('version'),
    tick: columns.number('tick'),
    idempotent: columns.flag('idempotent'),
    attempt: columns.number('attempt'),
    delivery: columns.number('delivery'),
    runs: columns.number('runs'),
    occurrence: columns.number('occurrence'),
    startAt: columns.number('run_at'),
    slotAt: columns.numberOrNull('slot_at'),
    token: columns.number('token'),
    answered: answeredOf(columns),
    cancelRequested: columns.flag('cancel_requested'),
    cause: columns.textOrNull('cause') as Cause | null,
  };
}

function answeredOf(columns: Columns): Answered | null {
  const token = columns.numberOrNull('answered_token');
  if (token === null) return null;
  const outcome = columns.text('answered_outcome') as Outcome;
  return { token, outcome, digest: columns.text('answered_digest') };
}

export function liveRow(sql: SqlRow, submission: Submission): Loaded {
  const columns = new Columns(sql);
  const job: Job = { ...commonJob(columns, submission), lease: leaseOf(columns) };
  return {
    row: {
      job,
      chain: { root: columns.text('root'), entries: [], open: openDelivery(columns, job) },
      texts: {},
      claimRequestId: columns.textOrNull('claim_request'),
      reportDigest: columns.textOrNull('report_digest'),
      redrivenTo: null,
      dismissed: null,
    },
    ledger: columns.bytes('ledger'),
    pages: columns.number('pages'),
  };
}

function leaseOf(columns: Columns): Lease | null {
  const expiresAt = columns.numberOrNull('lease_until');
  if (expiresAt === null) return null;
  const token = columns.number('token');
  return { token, worker: columns.text('worker'), expiresAt, lengthMs: columns.number('lease_ms') };
}

/** What claim and begin stated, durable in columns of their own until the next entry closes it. */
function openDelivery(columns: Columns, job: Job): OpenDelivery {
  const { token, lease, delivery, idempotent, attempt } = job;
  if (lease === null) return [];
  const { worker } = lease;
  const open: OpenDelivery[number][] = [];
  const claimedAt = columns.numberOrNull('claimed_at');
  if (claimedAt !== null) {
    const expiresAt = columns.number('claimed_until');
    const to = STATE.LEASED;
    open.push({ type: 'claimed', tick: claimedAt, expiresAt, worker, token, delivery, idempotent, to });
  }
  const begunAt = columns.numberOrNull('begun_at');
  if (begunAt !== null) {
    const expiresAt = columns.number('begun_until');
    open.push({ type: 'begun', tick: begunAt, expiresAt, worker, token, attempt, to: STATE.RUNNING });
  }
  return open;
}

export function settledRow(sql: SqlRow, submission: Submission): Loaded {
  const columns = new Columns(sql);
  const dismissed = columns.textOrNull('dismissed');
  return {
    row: {
      job: {
        ...commonJob(columns, submission),
        outcomeUnknown: columns.flag('outcome_unknown'),
        endedAt: columns.number('ended_at'),
      },
      chain: { root: columns.text('root'), entries: [], open: [] },
      texts: {},
      claimRequestId: null,
      reportDigest: columns.textOrNull('report_digest'),
      redrivenTo: columns.numberOrNull('redriven_to'),
      dismissed: dismissed === null ? null : (JSON.parse(dismissed) as Noted),
    },
    ledger: columns.bytes('ledger'),
    pages: columns.number('pages'),
  };
}

function rareOf(job: Job): string | null {
  const { testified, testimonies, openSteps, requiredEffectCommitted, marked } = job;
  const common =
    testified === null && testimonies === 0 && openSteps.length === 0 && !requiredEffectCommitted && !marked;
  return common
    ? null
    : JSON.stringify({ testified, testimonies, openSteps, requiredEffectCommitted, marked });
}

const flag = (value: boolean): number => (value ? 1 : 0);

/** When time will change this job, null for never. */
function lapseAt(job: Job): number | null {
  if (job.state === STATE.UNCERTAIN || stateIsTerminal(job.state)) return null;
  const { deadline } = job.submission;
  const expiresAt = job.lease?.expiresAt ?? null;
  if (deadline === null || expiresAt === null) return deadline ?? expiresAt;
  return Math.min(deadline, expiresAt);
}

/** Values of the changing columns of `live`, in the order of `LIVE_CHANGING`. */
export function liveValues(row: Row, ledger: Uint8Array, pages: number): SqlValue[] {
  const { job, chain } = row;
  const { lease, answered } = job;
  const claimed = chain.open.find((fact) => fact.type === 'claimed');
  const begun = chain.open.find((fact) => fact.type === 'begun');
  return [
    job.state,
    job.version,
    job.tick,
    flag(job.idempotent),
    job.attempt,
    job.delivery,
    job.runs,
    job.occurrence,
    job.startAt,
    job.slotAt,
    job.token,
    lease?.worker ?? null,
    lease?.expiresAt ?? null,
    lease?.lengthMs ?? null,
    lapseAt(job),
    flag(job.cancelRequested),
    job.cause,
    answered?.token ?? null,
    answered?.outcome ?? null,
    answered?.digest ?? null,
    row.claimRequestId,
    row.reportDigest,
    chain.root,
    ledger,
    pages,
    claimed?.tick ?? null,
    claimed?.expiresAt ?? null,
    begun?.tick ?? null,
    begun?.expiresAt ?? null,
    rareOf(job),
  ];
}

export const LIVE_CHANGING = [
  'state',
  'version',
  'tick',
  'idempotent',
  'attempt',
  'delivery',
  'runs',
  'occurrence',
  'run_at',
  'slot_at',
  'token',
  'worker',
  'lease_until',
  'lease_ms',
  'lapse_at',
  'cancel_requested',
  'cause',
  'answered_token',
  'answered_outcome',
  'answered_digest',
  'claim_request',
  'report_digest',
  'root',
  'ledger',
  'pages',
  'claimed_at',
  'claimed_until',
  'begun_at',
  'begun_until',
  'rare',
] as const;

/** Values of `settled`, in the order of `SETTLED_COLUMNS`. */
export function settledValues(
  row: Row,
  place: { readonly route: number; readonly lane: string | null },
  ledger: Uint8Array,
  pages: number,
): SqlValue[] {
  const { job } = row;
  return [
    job.id,
    place.route,
    place.lane,
    job.state,
    job.version,
    job.tick,
    flag(job.idempotent),
    job.attempt,
    job.delivery,
    job.runs,
    job.occurrence,
    job.startAt,
    job.slotAt,
    job.token,
    flag(job.cancelRequested),
    flag(job.outcomeUnknown),
    job.cause,
    job.answered?.token ?? null,
    job.answered?.outcome ?? null,
    job.answered?.digest ?? null,
    row.reportDigest,
    row.chain.root,
    ledger,
    pages,
    rareOf(job),
    job.endedAt,
    row.redrivenTo,
    row.dismissed === null ? null : JSON.stringify(row.dismissed),
  ];
}

export const SETTLED_COLUMNS = [
  'id',
  'route',
  'lane',
  'state',
  'version',
  'tick',
  'idempotent',
  'attempt',
  'delivery',
  'runs',
  'occurrence',
  'run_at',
  'slot_at',
  'token',
  'cancel_requested',
  'outcome_unknown',
  'cause',
  'answered_token',
  'answered_outcome',
  'answered_digest',
  'report_digest',
  'root',
  'ledger',
  'pages',
  'rare',
  'ended_at',
  'redriven_to',
  'dismissed',
] as const;
