/** Where the runtime tells what an operator should know: what a logger throws is its own affair and disturbs no job. */

/** Where a worker tells what an operator should know. */
export interface Logger {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** The same logger, with whatever it throws or rejects with kept from its callers. */
export function isolated(logger: Logger): Logger {
  const guard =
    (level: keyof Logger) =>
    (details: object, message: string): void => {
      try {
        const answer: unknown = logger[level](details, message);
        // A logger may be asynchronous though its type says otherwise; its rejection must not end the process.
        if (answer instanceof Promise) answer.catch(() => undefined);
      } catch {
        // Nobody is left to be told.
      }
    };
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') };
}
