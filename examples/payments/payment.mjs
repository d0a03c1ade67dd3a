// The one kind of job here: charge a card once, and say honestly when nobody can know whether it was charged.
import { defineJob, outcome } from '../../dist/index.js';

const CURRENCIES = ['EUR', 'GBP', 'USD'];
const CENTS_MAX = 1_000_000;

/** What a payment must be, as a Standard Schema (zod, valibot or arktype would do as well). */
const paymentSchema = {
  '~standard': {
    version: 1,
    vendor: 'payments-example',
    validate(value) {
      const { cents, currency } = value;
      if (!Number.isSafeInteger(cents)) return refused('cents', `must be a whole number, not ${cents}`);
      if (cents <= 0) return refused('cents', `must be above 0, not ${cents}`);
      if (cents > CENTS_MAX) return refused('cents', `must be at most ${CENTS_MAX}, not ${cents}`);
      if (!CURRENCIES.includes(currency)) {
        return refused('currency', `must be ${CURRENCIES.join(', ')}, not ${currency}`);
      }
      return { value };
    },
  },
};

function refused(field, problem) {
  return { issues: [{ path: [field], message: problem }] };
}

/** The definition, for a provider; `tell` hears what the handler does, and nothing depends on it. */
export function chargeCard(provider, tell = () => undefined) {
  return defineJob({
    kind: 'charge-card',
    revision: 1,
    payload: paymentSchema,
    schemaVersion: 'payment-1',
    // A second charge would cost somebody money, so a lost attempt is never simply run again.
    idempotent: false,
    // Payments of one account are made one after the other, in the order in which they came.
    orderingKey: ({ account }) => account,
    maxAttempts: 5,
    backoff: { base: '50ms', max: '400ms' },
    timeout: '10s',
    // How long to wait after a loss before the provider is asked: a minute in real life, little in a demo.
    reconcileAfter: '500ms',

    async run(job, context) {
      const { invoice } = job.payload;
      tell(`charging ${invoice}`);
      // When no answer comes this throws, which proves nothing: the payment becomes UNCERTAIN.
      const answer = await provider.charge(context.effectKey('charge'), job.payload, context.signal);
      tell(`answered ${invoice}`);
      if (answer.status === 'unavailable') return outcome.retryable('the provider says: try again later');
      if (answer.status === 'voided') return outcome.permanent('the charge was voided before it was made');
      return { receipt: answer.receipt };
    },

    /** Asked about an uncertain payment: was it made? If not, it is made impossible, so that "failed" stays true. */
    async reconcile(_job, context) {
      const answer = await provider.lookUpOrVoid(context.effectKey('charge'), context.signal);
      if (answer.status === 'charged') return 'succeeded';
      return answer.status === 'voided' ? 'failed' : 'unknown';
    },
  });
}
