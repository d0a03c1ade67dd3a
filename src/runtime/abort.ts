/** Why a handler is told to stop. */
export type AbortReason = 'lease_lost' | 'cancel_requested' | 'deadline' | 'timeout' | 'shutdown';

/** The reason a handler's signal is aborted with, and what its own awaits then throw. */
export class AttemptAborted extends Error {
  readonly reason: AbortReason;

  constructor(reason: AbortReason) {
    super(`the attempt was told to stop: ${reason}`);
    this.name = 'AttemptAborted';
    this.reason = reason;
  }
}

/** This worker does not hold the job any more: whatever the handler wanted to commit was refused. */
export class LeaseLostError extends Error {
  readonly refused: string;

  constructor(refused: string) {
    super(`this worker does not hold the job any more: ${refused}`);
    this.name = 'LeaseLostError';
    this.refused = refused;
  }
}
