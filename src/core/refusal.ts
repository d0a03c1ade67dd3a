/** The closed set of refusals in the order they are looked for; a refusal is a value and never forces a state. */

/** Refusals with what each means and the safe next step, first applicable first. */
export const REFUSAL_TABLE = [
  {
    code: 'unknown_job',
    meaning: 'No job with this id is stored: it never was, or it was pruned.',
    next: 'Check the id, and ask by idempotency key: a pruned job leaves a tombstone for as long as its key is kept.',
  },
  {
    code: 'stale_token',
    meaning: 'The token is not the last one granted for this job: somebody else holds, or held, it since.',
    next: 'Stop working on the job. A settlement was kept as testimony; do not send it again.',
  },
  {
    code: 'version_mismatch',
    meaning: 'The job has moved since the version the operator saw.',
    next: 'Read the job again and decide on what it says now.',
  },
  {
    code: 'already_settled',
    meaning: 'An outcome was accepted under this token, and this command is not that same settlement again.',
    next: 'Do nothing: the first accepted outcome stands. Look at the job if the two reports differ.',
  },
  {
    code: 'lease_lost',
    meaning:
      'The lease of this token, the last one granted, is over: expired, past the deadline, or cancelled.',
    next: 'Stop working on the job. A settlement of an UNCERTAIN job was kept as testimony.',
  },
  {
    code: 'terminal',
    meaning: 'The job is settled, and terminal is final.',
    next: 'Redrive it if it should run again: that makes a new job linked to this one.',
  },
  {
    code: 'wrong_state',
    meaning: 'The command does not apply to the state the job is in.',
    next: 'Look at the state in the answer; the command may be late, early, or not needed any more.',
  },
  {
    code: 'deadline_passed',
    meaning: 'The deadline is reached, so no attempt may start.',
    next: 'Decide it succeeded or failed, or redrive it with a new deadline once it has ended.',
  },
  {
    code: 'not_due',
    meaning: 'The job is SCHEDULED and its start lies ahead.',
    next: 'Wait, or promote it.',
  },
  {
    code: 'lane_blocked',
    meaning: 'An older unresolved job of the same lane has to end first.',
    next: 'Look at the head of the lane; decide or cancel it if it is stuck.',
  },
  {
    code: 'queue_paused',
    meaning: 'The queue is paused: nothing in it starts.',
    next: 'Resume the queue when the reason it was paused for is gone.',
  },
  {
    code: 'kind_unknown',
    meaning: 'The claimer has no definition of this kind.',
    next: 'Start a worker that has it; the job waits and is listed as stranded meanwhile.',
  },
  {
    code: 'revision_unknown',
    meaning: "The job is bound to a newer revision than the claimer's definition.",
    next: 'Deploy a worker of that revision; older workers leave the job alone.',
  },
  {
    code: 'effect_not_committed',
    meaning: 'The job requires an effect that is not committed, so it cannot have succeeded.',
    next: 'Commit the effect before returning; if it cannot be committed any more, decide failed or retry.',
  },
  {
    code: 'effect_conflict',
    meaning: 'The effect key is in use with another descriptor, or names no step that is open.',
    next: 'Give each effect its own key, and the same content to the same key.',
  },
  {
    code: 'step_open',
    meaning: 'A step that must not run twice was begun and never reported done, or too many steps are open.',
    next: 'Say of each open step whether it took place; a handler settles uncertain instead of running it again.',
  },
  {
    code: 'retry_not_permitted',
    meaning: 'The job is not idempotent, or has no attempts or deliveries left.',
    next: 'Decide succeeded or failed; redrive it afterwards if it should run again.',
  },
  {
    code: 'already_redriven',
    meaning: 'A new job was made from this one before; it happens once.',
    next: 'Follow the link to the new job, and redrive that one if it ended badly too.',
  },
  {
    code: 'tick_overflow',
    meaning: 'A tick or a length of time is outside its domain or bound, or a sum would pass 2^53-1.',
    next: 'Give a whole number of milliseconds within the bounds; a snooze must end after now.',
  },
] as const;

export type Refusal = (typeof REFUSAL_TABLE)[number]['code'];

/** Refusals of admission, in the order of its checks. They are not refusals of a job: there is none yet. */
export const ADMISSION_REFUSAL_TABLE = [
  {
    code: 'conflict',
    meaning: 'The idempotency key was used before with other content; nothing was changed.',
    next: 'Use the existing job, or another key if this really is other work.',
  },
  {
    code: 'deadline_passed',
    meaning: 'The deadline is not ahead, or the start is not before it.',
    next: 'Give a later deadline, or drop work that is too late to do.',
  },
  {
    code: 'capacity_exceeded',
    meaning: 'The queue holds its bound of unresolved jobs, or the batch would pass it.',
    next: 'Wait until jobs end, or raise maxUnresolved; the same key is safe to try again.',
  },
] as const;

export type AdmissionRefusal = (typeof ADMISSION_REFUSAL_TABLE)[number]['code'];
