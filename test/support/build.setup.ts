/** Builds the library once for tests that start real processes: Node 20 runs no TypeScript. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of the compiled library. */
    built: string;
  }
}

export default function build(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'custody-built-'));
  const tsc = resolve('node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist')]);
  copyFileSync('package.json', join(folder, 'package.json'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  project.provide('built', join(folder, 'dist'));
  return () => rmSync(folder, { recursive: true, force: true });
}
