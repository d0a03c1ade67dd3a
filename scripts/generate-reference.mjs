// Writes the generated pages of docs/reference. Run it from the root of the repository, as `npm run docs`.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { runnerImport } from 'vite';

const { module } = await runnerImport('./scripts/reference.ts');
for (const [path, text] of Object.entries(module.referencePages())) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stdout.write(`${path}\n`);
}
