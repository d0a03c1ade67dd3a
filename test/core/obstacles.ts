/** What stands in the way of a command, each thing looked at for itself: the refusals that apply, in no order. */
import type { Command, Context } from '../../src/core/commands.ts';
import { hasUnsafeOpenStep, type Job } from '../../src/core/job.ts';
import { limits } from '../../src/core/limits.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { STATE, stateAwaitsWorker, stateIsTerminal } from '../../src/core/states.ts';

/** Everything that stands in the way of a command on a job that was lapsed, each thing looked at for itself. */
export function obstacles(job: Job, command: Command, context: Context, now: number): Set<Refusal> {
  const found = new Set<Refusal>();
  const note = (code: Refusal, applies: boolean): void => {
    if (applies) found.add(code);
  };
  const retries = command.type === 'reconcile' && command.decision === 'retry';
  const succeeds =
    (command.type === 'settle' && command.outcome === 'succeeded') ||
    (command.type === 'reconcile' && command.decision === 'succeeded');
  const starts = command.type === 'claim' || command.type === 'begin';
  const { deadline, internal, requiresEffect, maxAttempts, maxDeliveries, revision } = job.submission;
  note('queue_paused', starts && context.queuePaused && internal === null);
  note('effect_not_committed', succeeds && requiresEffect !== null && !job.requiredEffectCommitted);
  note('deadline_passed', retries && deadline !== null && now >= deadline);
  if ('version' in command) {
    note('version_mismatch', command.version !== null && command.version !== job.version);
    note('terminal', stateIsTerminal(job.state));
  }
  switch (command.type) {
    case 'claim':
      note('stale_token', command.token <= job.token);
      note('terminal', stateIsTerminal(job.state));
      note('wrong_state', !stateAwaitsWorker(job.state) && !stateIsTerminal(job.state));
      note('not_due', job.state === STATE.SCHEDULED && now < job.startAt);
      note('lane_blocked', !context.laneHead);
      note('kind_unknown', context.claimer === null);
      note('revision_unknown', context.claimer !== null && context.claimer.revision < revision);
      note('tick_overflow', command.leaseMs < 1);
      return found;
    case 'cancel':
      return found;
    case 'promote':
      note('wrong_state', job.state !== STATE.SCHEDULED && !stateIsTerminal(job.state));
      return found;
    case 'reconcile': {
      note('stale_token', command.token !== job.token);
      note('wrong_state', job.state !== STATE.UNCERTAIN && !stateIsTerminal(job.state));
      const said = command.steps.map((step) => step.key);
      const open = job.openSteps.map((step) => step.key);
      note('effect_conflict', said.some((key) => !open.includes(key)) || new Set(said).size < said.length);
      const left = job.openSteps.filter((step) => !said.includes(step.key));
      note('step_open', retries && hasUnsafeOpenStep({ ...job, openSteps: left }));
      const spent = !job.idempotent || job.attempt >= maxAttempts || job.delivery >= maxDeliveries;
      note('retry_not_permitted', retries && spent);
      return found;
    }
    default:
      noteHolder(job, command, context, now, note);
      return found;
  }
}

type HolderCommand = Exclude<Command, { type: 'claim' | 'cancel' | 'promote' | 'reconcile' }>;

function noteHolder(
  job: Job,
  command: HolderCommand,
  context: Context,
  now: number,
  note: (code: Refusal, applies: boolean) => void,
): void {
  note('stale_token', command.token !== job.token || job.token === 0);
  note('already_settled', job.answered?.token === command.token);
  note('lease_lost', job.lease === null);
  const both = command.type === 'extend' || (command.type === 'settle' && command.outcome === 'interrupted');
  const needed = command.type === 'begin' ? STATE.LEASED : STATE.RUNNING;
  note('wrong_state', job.lease !== null && job.state !== needed && !(both && job.state === STATE.LEASED));
  const open = 'key' in command && job.openSteps.find((step) => step.key === command.key);
  const marked = context.effect;
  const differs = 'descriptor' in command && marked !== null && marked.descriptor !== command.descriptor;
  switch (command.type) {
    case 'extend':
      note('tick_overflow', command.extendMs < 1);
      break;
    case 'settle':
      note('tick_overflow', command.outcome === 'snoozed' && (command.until ?? 0) <= now);
      note('tick_overflow', command.jitterMs < 0);
      break;
    case 'commit_effect':
      note('effect_conflict', differs || Boolean(open));
      break;
    case 'finish_step':
      note('effect_conflict', !open);
      break;
    case 'begin_step': {
      note('effect_conflict', differs);
      const full = job.openSteps.length >= limits.openStepsMax;
      note('step_open', open ? !(open.idempotent && command.idempotent) : full && marked === null);
      break;
    }
    case 'begin':
  }
}
