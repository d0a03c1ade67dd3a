/** Deliberately broken versions of the deciding core: each is a mistake somebody could make, and a test that notices it. */

/** One mistake, as the single place of the source it changes, and the test that must fail for it. */
export interface Mutant {
  readonly name: string;
  /** What the mistake would do to a job. */
  readonly mistake: string;
  /** The source file, in src/core. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The test file, in test/core, and the name of the test. */
  readonly caughtBy: readonly [file: string, test: string];
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'deadline-open-ended',
    mistake: 'A job still starts on the tick of its deadline.',
    file: 'lapse.ts',
    find: 'deadline !== null && now >= deadline',
    replace: 'deadline !== null && now > deadline',
    caughtBy: ['lapse.test.ts', 'what has not begun is buried on the tick of the deadline'],
  },
  {
    name: 'lease-open-ended',
    mistake: 'A holder still settles on the tick its lease ends, when another may hold the job.',
    file: 'lease.ts',
    find: '|| nowTick >= deadlineTick',
    replace: '|| nowTick > deadlineTick',
    caughtBy: [
      'tokens.test.ts',
      'on the tick its lease ends a settlement is too late, and one tick earlier it is not',
    ],
  },
  {
    name: 'stale-token-settles',
    mistake: 'An earlier holder settles the run of the one that came after it.',
    file: 'decide.ts',
    find: "if (token !== job.token || token === 0) return 'stale_token';",
    replace: "if (token > job.token || token === 0) return 'stale_token';",
    caughtBy: ['tokens.test.ts', 'a token that is not the last one settles nothing, whatever the state is'],
  },
  {
    name: 'token-granted-twice',
    mistake: 'A token is granted again, so that two attempts have one fence.',
    file: 'decide.ts',
    find: "if (command.token <= job.token) return 'stale_token';",
    replace: "if (command.token < job.token) return 'stale_token';",
    caughtBy: [
      'claim.test.ts',
      'a token that is not above the last one is stale, also once the job waits again',
    ],
  },
  {
    name: 'terminal-reopened',
    mistake: 'A decision reopens a job that ended.',
    file: 'reconcile.ts',
    find: "if (stateIsTerminal(job.state)) return 'terminal';\n  if (job.state !== STATE.UNCERTAIN)",
    replace: 'if (!stateIsTerminal(job.state) && job.state !== STATE.UNCERTAIN)',
    caughtBy: ['uncertain.test.ts', 'only an UNCERTAIN job is decided'],
  },
  {
    name: 'cancellation-forgotten',
    mistake: 'A job somebody asked to cancel is scheduled for another attempt.',
    file: 'transition.ts',
    find: 'if (job.cancelRequested) return',
    replace: 'if (job.cancelRequested && to === STATE.PENDING) return',
    caughtBy: ['operate.test.ts', 'through every outcome that would wait again'],
  },
  {
    name: 'lost-attempt-rerun',
    mistake: 'A lost attempt that must not run twice is run again while attempts are left.',
    file: 'lapse.ts',
    find: 'if (job.state === STATE.RUNNING && !job.idempotent) {',
    replace:
      'if (job.state === STATE.RUNNING && !job.idempotent && job.attempt >= job.submission.maxAttempts) {',
    caughtBy: ['lapse.test.ts', 'a lost attempt that may not run twice is never run again and never buried'],
  },
  {
    name: 'any-attempt-decided',
    mistake: 'A decision about an earlier attempt decides the one in doubt now.',
    file: 'reconcile.ts',
    find: "if (command.token !== job.token) return 'stale_token';",
    replace: "if (command.token > job.token) return 'stale_token';",
    caughtBy: [
      'uncertain.test.ts',
      'a decision names the attempt it is about: one about an earlier attempt decides nothing of the last',
    ],
  },
  {
    name: 'retry-past-deadline',
    mistake: 'A retry is scheduled that can only miss its deadline.',
    file: 'settle.ts',
    find: "return landScheduled(job, 'retry_scheduled', start);",
    replace: "return landWaiting(job, STATE.SCHEDULED, 'retry_scheduled', start);",
    caughtBy: [
      'settle.test.ts',
      'a retry that would start on the deadline is buried at once, and one a millisecond earlier is not',
    ],
  },
  {
    name: 'lane-overtaken',
    mistake: 'A job overtakes an older one of its lane.',
    file: 'decide.ts',
    find: "if (!context.laneHead) return 'lane_blocked';",
    replace: '',
    caughtBy: [
      'claim.test.ts',
      'what the store alone knows holds a job back: its lane, its queue, its kind and its revision',
    ],
  },
  {
    name: 'snooze-costs-attempt',
    mistake: 'A job that only waits uses up its attempts.',
    file: 'settle.ts',
    find: "outcome !== 'snoozed' && ",
    replace: '',
    caughtBy: [
      'settle.test.ts',
      'a snooze starts at its tick and gives the attempt back, yet the job has run',
    ],
  },
  {
    name: 'testimony-dropped',
    mistake: 'The late report of the only witness is thrown away.',
    file: 'decide.ts',
    find: 'return refuse(refused, left, before, now, false);',
    replace: 'return refuse(refused, lapsed, before, now, false);',
    caughtBy: [
      'late-reports.test.ts',
      'a late success decides the job, as its own word and then as a decision about it',
    ],
  },
  {
    name: 'extension-adds-up',
    mistake: 'Frequent heartbeats push the end of a lease further and further away.',
    file: 'decide.ts',
    find: 'const expiresAt = leaseEnd(now, command.extendMs);',
    replace: 'const expiresAt = leaseEnd(lease.expiresAt, command.extendMs);',
    caughtBy: [
      'claim.test.ts',
      'an extension counts from now, not from the old expiry, and may shorten a lease',
    ],
  },
  {
    name: 'cancelled-series-goes-on',
    mistake: 'A series somebody asked to cancel goes on after the next success.',
    file: 'transition.ts',
    find: ' || job.cancelRequested) return done;',
    replace: ') return done;',
    caughtBy: ['recurrence.test.ts', 'ends the series when a cancellation was requested, and stands'],
  },
  {
    name: 'settlement-applied-twice',
    mistake: 'A settlement whose answer was lost is applied again instead of recognised.',
    file: 'decide.ts',
    find: 'return again ? DUPLICATE : lease;',
    replace: 'return again ? settle(job, { ...command, expiresAt: now, lengthMs: 1 }, command, now) : lease;',
    caughtBy: [
      'tokens.test.ts',
      'the same settlement again is a duplicate, and another one does not replace it',
    ],
  },
  {
    name: 'lapse-lost-on-refusal',
    mistake: 'A lapse is forgotten when the command that found it is refused.',
    file: 'decide.ts',
    find: 'return refuse(verdict, lapsed, before, now, false);',
    replace: 'return refuse(verdict, { job: before, facts: [] }, before, now, false);',
    caughtBy: ['claim.test.ts', 'nothing begins on the tick the lease ends, and the job waits again'],
  },
  {
    name: 'open-step-rerun',
    mistake: 'A policy runs an attempt again although a step that must not run twice may have taken place.',
    file: 'settle.ts',
    find: ' &&\n    !hasUnsafeOpenStep(job)',
    replace: '',
    caughtBy: [
      'uncertain.test.ts',
      'no policy decides a retry without attempts or deliveries left, on the deadline, or with an unsafe step open',
    ],
  },
  {
    name: 'pruned-key-merged',
    mistake: 'A key used again with other content after its job was pruned is merged into nothing.',
    file: 'admission.ts',
    find: 'if (holder.descriptor !== descriptor)',
    replace: 'if (holder.submission !== null && holder.descriptor !== descriptor)',
    caughtBy: [
      'admission.test.ts',
      'of a pruned job answers with its tombstone, and calls no option different',
    ],
  },
  {
    name: 'undone-effect-kept',
    mistake: 'A redriven job takes an effect for done that a compensation has undone.',
    file: 'redrive.ts',
    find: 'lineage: undone ? context.freshLineage : job.submission.lineage,',
    replace: 'lineage: job.submission.lineage,',
    caughtBy: [
      'redrive.test.ts',
      'is new once the effect was undone, and what was undone has not taken place',
    ],
  },
  {
    name: 'series-outlives-deadline',
    mistake:
      'A series is scheduled for a missed slot when its deadline has passed already, and is then buried.',
    file: 'transition.ts',
    find: 'isPastDeadline(job, Math.max(next, now))',
    replace: 'isPastDeadline(job, next)',
    caughtBy: [
      'recurrence.test.ts',
      'ends the series on the deadline, although a missed slot lies before it: nothing could start there',
    ],
  },
];
