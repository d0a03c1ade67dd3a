// One failure story, end to end: a worker adds seven to an account and dies before it can say so. The job is delivered
// again, after a restart, and the account still has seven. Exits 1 if anything is not as told.
import assert from 'node:assert/strict';
import { factsOf } from '../dist/evidence/index.js';
import { makeBundle, openMemoryStore, STATE, timelineOf, verifyBundle, verifyJob } from '../dist/index.js';

let tick = 0;
let ids = 0;
const options = { clock: () => tick, clockName: 'simulated', randomId: () => `lineage-${++ids}` };
const definitions = [{ kind: 'deposit', revision: 1, idempotent: true }];
const leaseMs = 30_000;
const say = (text = '') => console.log(text);
const at = (time) => `${(time / 1000).toFixed(3).padStart(6)} s`;
const step = (text) => say(`${at(tick)}  ${text}`);

/** The handler of the job: its effect commits together with its mark, under the token of this delivery. */
function addSeven(tx) {
  return tx.commitEffect('deposit', { account: 'alice', add: 7 }, () => {
    tx.application.alice = (tx.application.alice ?? 0) + 7;
    return { balance: tx.application.alice };
  });
}

say('The account that gets seven once');
say('================================');
say();
let store = openMemoryStore(options);
const [created] = await store.enqueue([
  {
    kind: 'deposit',
    revision: 1,
    payload: { account: 'alice', add: 7 },
    idempotent: true,
    orderingKey: 'alice',
    idempotencyKey: 'deposit-17',
    requiresEffect: 'deposit',
  },
]);
step(`A job is enqueued: add 7 to alice's account (job ${created.id}, key deposit-17).`);

tick = 1_000;
const [first] = await store.claim({
  worker: 'worker-a',
  leaseMs,
  max: 1,
  requestId: 'a-1',
  definitions,
  begin: true,
});
const holderA = { id: first.job.id, token: first.job.token };
step(`worker-a holds it under token ${holderA.token} until ${at(tick + leaseMs).trim()}.`);

const early = await store.settle([{ ...holderA, worker: 'worker-a', outcome: 'succeeded' }]);
assert.equal(early.settled[0].refused, 'effect_not_committed');
step('worker-a says "done" before its effect is committed: refused, effect_not_committed.');

tick = 2_000;
const committed = await store.transact(holderA, addSeven);
assert.deepEqual(committed.value, { duplicate: false, result: { balance: 7 } });
step(
  `worker-a commits: the account has ${committed.value.result.balance}. Then worker-a vanishes, before it can say so.`,
);

tick = 10_000;
const saved = JSON.stringify(await store.snapshot());
await store.close();
store = openMemoryStore(options);
await store.restore(JSON.parse(saved), { as: 'restart', by: { actor: 'demo' } });
step(`The program restarts from a snapshot (${saved.length} characters of JSON), proven entry by entry.`);

const claimB = { worker: 'worker-b', leaseMs, max: 1, definitions, begin: true };
tick = 30_999;
assert.deepEqual(await store.claim({ ...claimB, requestId: 'b-1' }), []);
step('worker-b asks one millisecond before the lease ends: nothing for it.');
tick = 31_000;
const [second] = await store.claim({ ...claimB, requestId: 'b-2' });
const holderB = { id: second.job.id, token: second.job.token };
assert.equal(second.job.id, created.id);
assert.ok(holderB.token > holderA.token);
step(
  `The lease ends. worker-b holds the same job, attempt ${second.job.attempt}, under token ${holderB.token}, never given before.`,
);

tick = 32_000;
const zombie = await store.settle([{ ...holderA, worker: 'worker-a', outcome: 'succeeded' }]);
assert.equal(zombie.settled[0].refused, 'stale_token');
step(
  'worker-a comes back and says "done": refused, stale_token. It changes nothing and is kept as testimony.',
);

tick = 33_000;
const again = await store.transact(holderB, addSeven);
assert.deepEqual(again.value, { duplicate: true, result: { balance: 7 } });
assert.deepEqual(store.application(), { alice: 7 });
step('worker-b commits the same effect: its mark is there, nothing is added. The account has 7.');

tick = 34_000;
const done = await store.settle([
  { ...holderB, worker: 'worker-b', outcome: 'succeeded', report: '{"balance":7}' },
]);
assert.equal(done.settled[0].job.state, STATE.SUCCEEDED);
const duplicate = await store.enqueue([
  {
    kind: 'deposit',
    revision: 1,
    payload: { add: 8, account: 'alice' },
    idempotent: true,
    orderingKey: 'alice',
    idempotencyKey: 'deposit-17',
  },
]);
assert.equal(duplicate[0].refused, 'conflict');
step('worker-b settles: SUCCEEDED. The same key with 8 instead of 7 is a conflict, not a merge.');

const evidence = await store.evidence(created.id);
const verified = verifyJob(evidence);
assert.ok(verified.ok);
say();
say(`The ledger of job ${created.id}`);
say('-------------------');
for (const { tick: time, state, sentence } of timelineOf(
  evidence.job.submission,
  factsOf(evidence.chain),
  (t) => at(t).trim(),
)) {
  say(`${at(time)}  ${state.padEnd(9)}  ${sentence}`);
}
for (const { tick: time, worker, token, outcome } of evidence.testimony) {
  say(`${at(time)}  testimony  Worker ${worker}, token ${token}, reported ${outcome}: too late, and kept.`);
}
say();
say(`root ${verified.root}`);
say(`verified: ${verified.entries} entries replay to SUCCEEDED`);

const bundle = JSON.stringify(
  makeBundle({
    ...evidence,
    testimony: evidence.testimony.map(({ tick: time, worker, token, outcome, digest }) => ({
      tick: time,
      worker,
      token,
      outcome,
      digest,
    })),
  }),
);
assert.ok(verifyBundle(bundle).ok);
const forged = verifyBundle(bundle.replace('"attempt":2', '"attempt":1'));
assert.ok(!forged.ok);
say(`bundle of ${bundle.length} characters: verifies without any store`);
say(`the same bundle with attempt 2 changed to 1: refused, ${forged.faults[0].code}`);
assert.deepEqual(store.application(), { alice: 7 });
say();
say('story: 1 job, 2 deliveries, 1 zombie refused, alice has 7, ledger verified');
say();
