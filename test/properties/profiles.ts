/** Mixes of actions that lead random histories to where a family of promises could break. */
import fc from 'fast-check';
import { type Action, actionsFor, jobSpec } from './actions.ts';

/** One mix: every action has its usual weight unless it is named. */
export interface Profile {
  readonly name: string;
  readonly runs: number;
  readonly risky: boolean;
  readonly weights: { readonly [Name in Action['do']]?: number };
}

const USUAL: { readonly [Name in Action['do']]: number } = {
  enqueue: 12,
  ask_again: 2,
  claim: 20,
  begin: 4,
  extend: 3,
  settle: 18,
  repeat: 3,
  zombie: 4,
  transact: 8,
  answer: 2,
  crash: 2,
  garbage: 1,
  lapse: 3,
  pass: 8,
  pass_to: 8,
  back: 1,
  cancel: 3,
  promote: 2,
  dismiss: 1,
  decide: 3,
  redrive: 2,
  pause: 1,
  resume: 2,
  configure: 1,
  prune: 1,
  move: 1,
  look: 1,
};

export const PROFILES: readonly Profile[] = [
  { name: 'a bit of everything', runs: 110, risky: false, weights: {} },
  {
    name: 'lost attempts, reconcilers and compensations',
    runs: 110,
    risky: true,
    weights: { crash: 5, zombie: 10, decide: 10, answer: 10, cancel: 6, pass_to: 14, redrive: 4 },
  },
  {
    name: 'effects and steps over redeliveries',
    runs: 120,
    risky: true,
    weights: { transact: 50, claim: 30, settle: 12, decide: 8, redrive: 6, lapse: 1, prune: 0, ask_again: 1 },
  },
  {
    name: 'lanes, priorities, pauses and bounds',
    runs: 90,
    risky: false,
    weights: { enqueue: 20, claim: 30, begin: 14, pause: 8, resume: 6, configure: 5, transact: 2, look: 3 },
  },
  {
    name: 'operators and retention',
    runs: 80,
    risky: true,
    weights: { redrive: 12, cancel: 8, promote: 6, dismiss: 6, prune: 5, settle: 24, decide: 6 },
  },
  {
    name: 'clocks that jump and stores that move',
    runs: 90,
    risky: true,
    weights: { back: 8, move: 8, pass: 14, pass_to: 14, prune: 3, ask_again: 6 },
  },
];

/** Histories of this mix. */
export function historyOf(profile: Profile, maxLength = 160): fc.Arbitrary<readonly Action[]> {
  const actions = actionsFor(jobSpec(profile.risky));
  const weights = { ...USUAL, ...profile.weights };
  const names = Object.keys(weights) as Action['do'][];
  const weighted = names.map((name) => ({ arbitrary: actions[name], weight: weights[name] }));
  return fc.array(fc.oneof(...weighted), { maxLength, size: 'max' });
}
