import { defineConfig } from 'vitest/config';

const everything = { branches: 100, functions: 100, lines: 100, statements: 100 };

export default defineConfig({
  test: {
    reporters: ['default', './test/support/tally.ts'],
    coverage: {
      provider: 'v8',
      include: ['src/core/**/*.ts', 'src/evidence/**/*.ts', 'src/store/**/*.ts', 'src/testing/**/*.ts'],
      reporter: [['text', { skipFull: true }], 'json-summary', 'html'],
      thresholds: { 'src/core/**': everything, 'src/evidence/**': everything },
    },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          pool: 'threads',
          globalSetup: ['test/support/build.setup.ts'],
          setupFiles: ['test/support/seed.ts'],
          testTimeout: 30_000,
        },
      },
    ],
  },
});
