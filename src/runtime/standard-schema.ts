/** The part of the Standard Schema interface that Custody uses, so that any schema library serves and none is needed. */

/** A schema of any library that follows the interface, version 1. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Offered by libraries that can say their schema as JSON Schema. */
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: string }) => Record<string, unknown> }
      | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema takes. */
export type InputOf<Schema> = Schema extends StandardSchema<infer Input, unknown> ? Input : never;
/** What a schema makes of it. */
export type OutputOf<Schema> = Schema extends StandardSchema<unknown, infer Output> ? Output : never;

/** Where an issue lies, as in `$.items[3].when`. */
export function issuePath(issue: SchemaIssue): string {
  return (issue.path ?? []).reduce<string>((path, part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'number' ? `${path}[${key}]` : `${path}.${String(key)}`;
  }, '$');
}
