/** What must hold in every history, each claim by its own name, with how often it was put to the test and what broke it. */

export const CLAIMS = {
  oneHolder: 'a job is never given to a second holder while the first one holds it',
  oneInLane: 'a lane never has two jobs in progress',
  tokensRise: 'no token is granted twice or below an earlier one, neither after a restart nor in a copy',
  staleChangesNothing: 'a stale token changes nothing',
  refusalChangesNothing: 'a refusal leaves its job as time alone has left it',
  othersAreLeftAlone: 'a command moves no job but its own, except for what time has ended',
  repeatedSettlement: 'a settlement sent twice changes nothing the second time',
  verdictTellsTheRow: 'no verdict shows a job that is not stored',
  terminalIsFinal: 'a settled job never changes again',
  laneOrder: 'no job of a lane starts before an older one has ended',
  noBeginAtDeadline: 'no attempt starts at or past its deadline',
  noScheduleAtDeadline: 'no start is scheduled at or past the deadline',
  capacity: 'no admission passes the bound of its queue, and none below it is refused for it',
  effectOnce: 'no effect is applied twice for one lineage, occurrence and key',
  rollback: 'a transaction that is refused or throws leaves nothing behind',
  evidence: 'no job stands where its evidence does not lead',
  historyGrows: 'no recorded fact is ever rewritten or dropped',
  noSilentRerun:
    'a job that is not idempotent never runs again after a lost attempt without a recorded decision',
  lossIsUncertain: 'a lost attempt that may not be repeated is never anything but UNCERTAIN',
  uncertainRests: 'nothing but a recorded decision moves an UNCERTAIN job',
  cancelSticks: 'a requested cancellation is never forgotten by a job that would wait again',
  compensation:
    'no job that ran ends badly without its compensation in the same commit, and no other has one',
  reconciler:
    'no UNCERTAIN job with a reconciler lacks its reconcile job, and none asks once it is decided otherwise',
  keys: 'no idempotency key or request id answers with other content or another job',
  admission: 'no admission is judged in another order than key, deadline, capacity',
  selection: 'no claim takes another job than the rule of lanes, priorities and tokens names',
  claimRepeats: 'a claim asked again never gives other deliveries while the first ones last',
  pauses: 'a paused queue starts nothing',
  capability: 'no claimer gets a kind or revision that it does not know, or makes a contract weaker',
  badInput: 'bad input never changes anything',
  clock: 'a clock behind by no more than the tolerance is never followed, and one further behind always',
  extension: 'an extension moves the end of a lease and nothing else',
  redrive: 'a job is never redriven twice, out of its lineage or without links',
  retention: 'nothing that is unresolved or that a person must see is pruned',
  moving: 'nothing is lost or changed by a restart or a copy',
  explanation: 'no job is called claimable that is not, or the other way round',
  sharing: 'nothing that is done to an answer or to a read reaches the store',
  reads: 'no two reads of one store tell different stories',
} as const;

export type Claim = keyof typeof CLAIMS;

/** The claim that an observation broke. */
class ClaimBroken extends Error {
  readonly claim: Claim;

  constructor(claim: Claim, detail: string) {
    super(`broken: ${CLAIMS[claim]}\n  ${detail}`);
    this.name = 'ClaimBroken';
    this.claim = claim;
  }
}

/** Counts checks by claim and remembers what broke first. */
export class Claims {
  readonly tested: Map<Claim, number> = new Map();
  readonly broken: Map<Claim, string> = new Map();

  /** The condition must hold, or the claim is broken. */
  hold(claim: Claim, condition: boolean, detail: () => string): void {
    this.tested.set(claim, (this.tested.get(claim) ?? 0) + 1);
    if (condition) return;
    const error = new ClaimBroken(claim, detail());
    if (!this.broken.has(claim)) this.broken.set(claim, error.message);
    throw error;
  }

  /** What another check throws breaks this claim. */
  async attempt(claim: Claim, check: () => Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.hold(claim, false, () => (error instanceof Error ? error.message : String(error)));
    }
    this.hold(claim, true, () => '');
  }
}
