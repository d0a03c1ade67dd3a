// How a program talks to the payment provider: two calls, and the provider's books to compare with.

/** The three calls, at the provider that listens at `url`. */
export function paymentProvider(url) {
  return {
    /** Answers `charged`, `unavailable` (then nothing was charged) or `voided`; throws when no answer comes. */
    async charge(key, payment, signal) {
      const response = await post(`${url}/charge`, { key, ...payment }, signal);
      if (response.status === 503) return { status: 'unavailable' };
      return response.json();
    },
    /** Answers `charged` or `voided`: what was not charged by now cannot be charged any more. */
    async lookUpOrVoid(key, signal) {
      const response = await post(`${url}/lookup-or-void`, { key }, signal);
      return response.json();
    },
    async books() {
      const response = await fetch(`${url}/books`);
      return response.json();
    },
  };
}

function post(url, body, signal) {
  const headers = { 'content-type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal });
}
