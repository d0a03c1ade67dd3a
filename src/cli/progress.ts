/** A progress bar for long runs: on the error stream, only on a terminal, and gone before anything else is printed. */
import type { Sink } from './output.ts';

/** Where and how progress is shown. */
export interface ProgressPlace {
  readonly stderr: Sink;
  /** Whether anybody sees it. */
  readonly shown: boolean;
  readonly now: () => number;
}

export interface Progress {
  /** Says how far it is; drawn at most ten times a second. */
  at(done: number): void;
  /** Takes the bar away. */
  end(): Promise<void>;
}

const BAR_CELLS = 30;
const REDRAW_MS = 100;
const CLEAR = '\r\u001b[2K';

/** Starts a bar. Without a known `total` it counts. */
export function startProgress(place: ProgressPlace, what: string, total: number | null): Progress {
  if (!place.shown) return { at: () => undefined, end: async () => undefined };
  const startedAt = place.now();
  let drawnAt = Number.NEGATIVE_INFINITY;
  let drawing: Promise<void> = Promise.resolve();
  return {
    at: (done) => {
      const now = place.now();
      if (now - drawnAt < REDRAW_MS) return;
      drawnAt = now;
      const text = `${CLEAR}${what} ${barOf(done, total)}${restOf(done, total, now - startedAt)}`;
      drawing = drawing.then(() => place.stderr.write(text));
    },
    end: async () => {
      await drawing;
      if (drawnAt > Number.NEGATIVE_INFINITY) await place.stderr.write(CLEAR);
    },
  };
}

function barOf(done: number, total: number | null): string {
  if (total === null || total === 0) return `${done}`;
  const full = Math.min(BAR_CELLS, Math.floor((BAR_CELLS * done) / total));
  return `[${'#'.repeat(full)}${'.'.repeat(BAR_CELLS - full)}] ${done}/${total}`;
}

function restOf(done: number, total: number | null, elapsedMs: number): string {
  if (total === null || done === 0 || elapsedMs < 1_000) return '';
  return `, ${Math.ceil(((total - done) * elapsedMs) / done / 1_000)}s left`;
}
