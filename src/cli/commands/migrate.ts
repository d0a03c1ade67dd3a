/** `custody migrate` makes a store or brings it to the current schema; with `--print` it shows the SQL and touches nothing. */
import { MIGRATIONS } from '../../store/sqlite/migrations.ts';
import { type AddCommand, answer, defineCommand } from '../command.ts';
import { type CommonOptions, storeUrl, withStore } from '../context.ts';
import { plain } from '../output.ts';

export const addMigrate: AddCommand = defineCommand<CommonOptions & { readonly print?: boolean }>({
  usage: 'migrate',
  summary: 'make the store, or bring it to the current schema; safe from many processes at once',
  examples: ['custody migrate --store sqlite:jobs.db', 'custody migrate --print'],
  json: '{ store: string, schema: number }; with --print: { migrations: { number, compatibleFrom, sql }[] }',
  exits: [],
  options: (command) => {
    command.option('--print', 'print the SQL of every step and change nothing');
  },
  run: async (run) => {
    if (run.options.print === true) {
      const steps = MIGRATIONS.map(
        ({ number, compatibleFrom, sql }) =>
          `-- Step ${number}; readable from schema ${compatibleFrom} on.\n${sql.trim()}\n`,
      );
      await answer(run, { migrations: MIGRATIONS }, steps.join('\n'));
      return;
    }
    const url = storeUrl(run);
    await withStore(run, (store) => store.migrate(), { create: true });
    const schema = MIGRATIONS.at(-1)?.number ?? 0;
    await answer(run, { store: url, schema }, `${plain(url)} has schema ${schema}.\n`);
  },
});
