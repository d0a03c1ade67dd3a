/** Runs one action of a history against the store and tells what was seen; null when there was nothing to do. */
import { STATE } from '../../src/core/index.ts';
import type { Action } from './actions.ts';
import * as operator from './perform-operator.ts';
import * as worker from './perform-worker.ts';
import type { Call } from './step.ts';
import { at, requestOf, type World } from './world.ts';

export async function perform(world: World, action: Action): Promise<Call | null> {
  switch (action.do) {
    case 'enqueue': {
      const requests = action.specs.map((spec) => requestOf(spec, world.now()));
      world.asked = [...world.asked, ...requests];
      const verdicts = await world.store.enqueue(requests, { atomic: action.atomic });
      return { verb: 'enqueue', requests, atomic: action.atomic, verdicts };
    }
    case 'ask_again': {
      const asked = at(
        world.asked.filter(({ idempotencyKey, requestId }) => (idempotencyKey ?? requestId) != null),
        action.pick,
      );
      if (asked === undefined) return null;
      const requests = [action.priority === null ? asked : { ...asked, priority: action.priority }];
      return { verb: 'enqueue', requests, atomic: false, verdicts: await world.store.enqueue(requests) };
    }
    case 'claim':
      return worker.claim(world, action);
    case 'begin': {
      const picked = worker.pickHeld(
        world,
        action.worker,
        action.pick,
        ({ state }) => state === STATE.LEASED,
      );
      return picked === null ? null : worker.begin(world, [picked.held]);
    }
    case 'extend': {
      const picked = worker.pickHeld(world, action.worker, action.pick);
      return picked === null ? null : worker.extend(world, picked.held, action.ms);
    }
    case 'settle':
      return worker.settle(world, action);
    case 'repeat':
      return worker.repeat(world, action);
    case 'zombie':
      return worker.zombie(world, action);
    case 'transact':
      return worker.transact(world, action);
    case 'answer':
      return operator.answer(world, action);
    case 'crash':
      world.worker(action.worker).crash();
      return null;
    case 'pass':
      world.clock.advance(action.ms);
      return null;
    case 'pass_to':
      operator.passTo(world, action);
      return null;
    case 'garbage':
      return operator.garbage(world, action.pick);
    case 'lapse':
      return operator.lapse(world, action.limit);
    case 'back':
      return operator.back(world, action.ms);
    case 'cancel':
    case 'promote':
    case 'dismiss':
      return operator.operate(world, action);
    case 'decide':
      return operator.decide(world, action);
    case 'redrive':
      return operator.redrive(world, action);
    case 'pause':
    case 'resume':
    case 'configure':
      return operator.ofQueue(world, action);
    case 'prune':
      return operator.prune(world, action);
    case 'move':
      return operator.move(world, action.as);
    case 'look':
      return operator.look(world);
  }
}
