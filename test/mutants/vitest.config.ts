/** Runs, for each mutant, the test file that must notice it, on sources with that one mistake; used by mutants.test.ts. */
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import type { Reporter, TestModule } from 'vitest/node';
import { MUTANTS, type Mutant } from './mutants.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Puts the mistake into the source as it is loaded; the file on disk is not touched. */
function mistakeOf({ name, file, find, replace }: Mutant): Plugin {
  return {
    name: `mutant-${name}`,
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith(`/src/core/${file}`)) return null;
      return { code: code.replace(find, () => replace), map: null };
    },
  };
}

/** Prints one line of JSON for each test that failed: the mutant, the test file and the name of the test. */
const printFailures: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests('failed')) {
        const failure = [module.project.name, module.relativeModuleId, test.name];
        process.stdout.write(`failed ${JSON.stringify(failure)}\n`);
      }
    }
  },
};

export default defineConfig({
  root,
  test: {
    reporters: [printFailures],
    projects: MUTANTS.map((mutant) => ({
      plugins: [mistakeOf(mutant)],
      test: {
        name: mutant.name,
        root,
        include: [`test/core/${mutant.caughtBy[0]}`],
        pool: 'threads' as const,
      },
    })),
  },
});
