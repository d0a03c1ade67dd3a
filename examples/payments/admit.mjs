// Turns lines of a file into jobs, and keeps for every line that did not become one the reason why.

/** `admitted` maps job ids to payments, in the order of the file; `refused` holds `{ line, why, detail }`. */
export async function admit(custody, definition, lines) {
  const admitted = new Map();
  const refused = [];
  const answers = await Promise.all(lines.map((line) => admitLine(custody, definition, line)));
  for (const [index, { id, why, detail }] of answers.entries()) {
    const { line, payment } = lines[index];
    if (why === undefined) admitted.set(id, payment);
    else refused.push({ line, why, detail });
  }
  return { admitted, refused };
}

async function admitLine(custody, definition, { payment, problem }) {
  if (problem !== undefined) return { why: 'malformed line', detail: problem };
  try {
    const { status, id } = await custody.enqueue(definition, payment, { idempotencyKey: payment.invoice });
    if (status === 'created') return { id };
    return { why: 'duplicate line', detail: `${payment.invoice} is job ${id} already` };
  } catch (error) {
    if (error.code === 'idempotency_conflict')
      return { why: 'invoice number used again', detail: error.message };
    if (error.code === 'payload_refused') return { why: 'payment fails its schema', detail: error.message };
    throw error;
  }
}
