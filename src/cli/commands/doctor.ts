/** `custody doctor` looks for what is wrong, or soon will be, and says for each finding how to mend it. */
import { limits } from '../../core/index.ts';
import type { Inspection } from '../../store/sqlite/doctor.ts';
import { StorageCorruptError } from '../../store/sqlite/errors.ts';
import type { Counts, QueueView, Store, WorkerView } from '../../store/store.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { type CommonOptions, type Inspector, type Run, storeUrl, withStore } from '../context.ts';
import { CliError, failureOf } from '../errors.ts';
import { paint, plain, relativeTime, timeOf } from '../output.ts';

/** One thing the doctor found. A fault is wrong now; a warning will be, or is for a person to judge. */
interface Finding {
  readonly severity: 'fault' | 'warning';
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

interface DoctorOptions extends CommonOptions {
  readonly full?: boolean;
  readonly strict?: boolean;
}

interface Examined {
  readonly findings: Finding[];
  readonly checked: string[];
}

export const addDoctor: AddCommand = defineCommand<DoctorOptions>({
  usage: 'doctor',
  summary: 'check the store and its surroundings, and say for each finding how to mend it',
  details: `Checks the durability settings as read back, the clock, the schema, the log's size, free space, the file's own
integrity, whether rows and counters agree, stranded jobs, and what waits for a person. It changes nothing.`,
  examples: ['custody doctor', 'custody doctor --full --json'],
  json: `{ healthy: boolean, findings: { severity: 'fault' | 'warning', code, message, remedy }[], checked: string[],
  storage: { path, fileBytes, walBytes, freeBytes, journalMode, schema, clock, lastTick, ... } | null }`,
  exits: ['unsound'],
  options: (command) => {
    command
      .option('--full', 'also compare every index with its table (slow on a large file)')
      .option('--strict', 'warnings count as faults for the exit code');
  },
  run: async (run) => {
    const examined: Examined = { findings: [], checked: [] };
    const storage = lookBeneath(run, examined);
    await lookThrough(run, examined);
    const { findings, checked } = examined;
    const faults = findings.filter(({ severity }) => severity === 'fault').length;
    await answer(run, { healthy: findings.length === 0, findings, checked, storage }, () => {
      const lines = findings.map(({ severity, code, message, remedy }) => {
        const mark = paint(run.look, severity === 'fault' ? 'red' : 'yellow', `${severity} ${code}`);
        return `${mark}: ${plain(message)}\n  ${plain(remedy)}\n`;
      });
      const sum = `${checked.length} checks, ${faults} faults, ${findings.length - faults} warnings`;
      return `${lines.join('')}${paint(run.look, findings.length === 0 ? 'green' : 'bold', sum)}\n`;
    });
    if (faults === 0 && (run.options.strict !== true || findings.length === 0)) return;
    const message = `the doctor found ${findings.length} things to mend`;
    throw new CliError('unsound', 'unhealthy', message, 'Each finding says how.');
  },
});

/** Beneath the store: also a file that no store opens any more can be looked into. */
function lookBeneath(run: Run<DoctorOptions>, examined: Examined): Inspection | null {
  let inspector: Inspector | null = null;
  try {
    inspector = run.context.openInspector(storeUrl(run));
    const inspection = inspector?.inspect({ full: run.options.full === true }) ?? null;
    for (const [code, find] of Object.entries(inspection === null ? {} : STORAGE_CHECKS)) {
      examined.checked.push(code);
      const found = inspection === null ? null : find(inspection, run.context.now());
      if (found !== null) examined.findings.push({ code, ...found });
    }
    return inspection;
  } catch (error) {
    // A file that is not there, or not ours, has nothing to examine.
    if (inspector === null && !(error instanceof StorageCorruptError)) throw error;
    examined.findings.push(brokenOf(error));
    return null;
  } finally {
    inspector?.close();
  }
}

/** Through the store: opening it sets every durability setting and reads it back, or fails. */
async function lookThrough(run: Run, examined: Examined): Promise<void> {
  try {
    await withStore(run, async (store) => {
      examined.checked.push('durability');
      const seen = await lookAtJobs(store);
      for (const [code, find] of Object.entries(JOB_CHECKS)) {
        examined.checked.push(code);
        const found = find(seen, run.context.now());
        if (found !== null) examined.findings.push({ code, ...found });
      }
    });
  } catch (error) {
    const broken = brokenOf(error);
    if (!examined.findings.some(({ code }) => code === broken.code)) examined.findings.push(broken);
  }
}

function brokenOf(error: unknown): Finding {
  const { code, message, next, exit } = failureOf(error);
  if (exit === 'usage' || (exit === 'internal' && !isDamage(error))) throw error;
  return exit === 'internal'
    ? { severity: 'fault', code: 'unreadable', message, remedy: RESTORE }
    : { severity: 'fault', code, message, remedy: next ?? RESTORE };
}

/** A bare error while reading rows is damage: a column or a ledger that is not as it was written. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError);
}

type Found = Omit<Finding, 'code'> | null;

const fault = (message: string, remedy: string): Found => ({ severity: 'fault', message, remedy });
const warning = (message: string, remedy: string): Found => ({ severity: 'warning', message, remedy });

const RESTORE = 'Stop every process that uses it, keep a copy of all its files, and restore the last backup.';
const MEGABYTE = 1_048_576;

const STORAGE_CHECKS: Readonly<Record<string, (seen: Inspection, now: number) => Found>> = {
  integrity: ({ damage }) =>
    damage.length === 0 ? null : fault(`SQLite finds the file damaged: ${damage.join('; ')}`, RESTORE),
  journal: ({ journalMode }) =>
    journalMode === 'wal'
      ? null
      : fault(
          `the journal mode is ${journalMode}, not wal`,
          'Close whatever switched it; the next process that opens the store switches it back.',
        ),
  schema: ({ schema }) =>
    schema.number === schema.known
      ? null
      : schema.number > schema.known
        ? warning(
            `the file has schema ${schema.number}, and this version knows ${schema.known}`,
            'Update this installation of Custody.',
          )
        : warning(`the file has schema ${schema.number} of ${schema.known}`, 'Run custody migrate.'),
  counters: ({ nextId, lastId, nextToken, lastToken }) =>
    lastId < nextId && lastToken < nextToken
      ? null
      : fault(
          `the counters (id ${nextId}, token ${nextToken}) lie behind the rows (id ${lastId}, token ${lastToken}): a copy made while it was open`,
          RESTORE,
        ),
  live_and_settled: ({ liveAndSettled }) =>
    liveAndSettled.length === 0
      ? null
      : fault(`jobs ${liveAndSettled.join(', ')} are both unresolved and settled`, RESTORE),
  lost_rows: ({ lost, orphaned }) =>
    lost.length + orphaned.length === 0
      ? null
      : fault(`jobs ${[...lost, ...orphaned].join(', ')} have only part of their rows`, RESTORE),
  lane_heads: ({ headless }) =>
    headless.length === 0
      ? null
      : fault(
          `the lanes of jobs ${headless.join(', ')} have no head, or the wrong one: they do not move`,
          RESTORE,
        ),
  queue_counts: ({ miscounted }) =>
    miscounted.length === 0
      ? null
      : fault(
          `the counted bound of queues ${miscounted.join(', ')} is wrong`,
          'Set the bound again with custody configure: that counts anew.',
        ),
  clock: ({ lastTick, clock }, now) =>
    clock === 'simulated'
      ? warning('the file was written by a simulated clock', 'Use it for tests only.')
      : lastTick - now <= limits.clockToleranceMs
        ? null
        : fault(
            `the last commit was at ${timeOf(lastTick)}, ${Math.round((lastTick - now) / 1_000)} s ahead of this clock`,
            'Correct the clock of this machine or of the one that wrote it; jobs are not lost, their times are corrected.',
          ),
  log_size: ({ walBytes }) =>
    walBytes <= 256 * MEGABYTE
      ? null
      : warning(
          `the write-ahead log has ${Math.round(walBytes / MEGABYTE)} MiB`,
          'Look for a program that keeps a read transaction open on the file; closing it lets the log shrink.',
        ),
  free_space: ({ freeBytes, walBytes }) =>
    freeBytes >= 64 * MEGABYTE + walBytes
      ? null
      : warning(`only ${Math.round(freeBytes / MEGABYTE)} MiB are free on the disk`, 'Free space, or prune.'),
  sealed: ({ sealedTo }) =>
    sealedTo === null
      ? null
      : warning(
          `the store is sealed: its jobs went to ${sealedTo}`,
          `Use ${sealedTo}; reading here still works.`,
        ),
};

interface Seen {
  readonly counts: Counts;
  readonly queues: readonly QueueView[];
  readonly workers: readonly WorkerView[];
}

async function lookAtJobs(store: Store): Promise<Seen> {
  return { counts: await store.counts(), queues: await store.queues(), workers: await store.workers() };
}

const JOB_CHECKS: Readonly<Record<string, (seen: Seen, now: number) => Found>> = {
  stranded: ({ counts, workers }) => {
    if (counts.stranded === 0) return null;
    const alive = workers.filter((worker) => worker.alive).length;
    return warning(
      `${counts.stranded} unresolved jobs can be taken by none of the ${alive} workers alive now`,
      'Start a worker with their kinds and revisions: custody jobs shows them, custody workers what is there.',
    );
  },
  needs_you: ({ counts }) =>
    counts.needsYou === 0
      ? null
      : warning(`${counts.needsYou} jobs wait for a person`, 'See custody uncertain, which says what to do.'),
  contradictions: ({ counts }) =>
    counts.contradictions === 0
      ? null
      : warning(
          `${counts.contradictions} late reports say otherwise than what their jobs ended as`,
          'Compare each with the world: custody uncertain lists them.',
        ),
  paused: ({ queues }, now) => {
    const paused = queues.filter(({ paused: by }) => by !== null);
    if (paused.length === 0) return null;
    const listed = paused.map(
      ({ queue, paused: by }) => `${queue} (by ${by?.actor}, ${relativeTime(by?.tick ?? now, now)})`,
    );
    return warning(
      `nothing starts in ${listed.join(', ')}`,
      'Resume each when its reason is gone: custody resume.',
    );
  },
  full_queues: ({ queues }) => {
    const full = queues.filter(
      ({ maxUnresolved, unresolved }) => maxUnresolved !== null && unresolved >= maxUnresolved,
    );
    if (full.length === 0) return null;
    const names = full.map(({ queue }) => queue).join(', ');
    return warning(
      `${names} hold all the jobs they may`,
      'Let them drain, or raise the bound: custody configure.',
    );
  },
  dead_holders: ({ workers }) => {
    const gone = workers.filter(({ alive, leases }) => !alive && leases > 0);
    if (gone.length === 0) return null;
    const names = gone.map(({ worker, leases }) => `${worker} (${leases})`).join(', ');
    return warning(
      `workers not seen for 90 s hold jobs: ${names}`,
      'Any running worker lapses them once overdue.',
    );
  },
};
