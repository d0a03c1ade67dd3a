// Child processes that are listened to line by line, and that never outlive this one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const running = new Set();
// Runs on every way out but SIGKILL; then the children see their standard input close, and leave by themselves.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));

/** A script of this folder in a process of its own. */
export class Child {
  name;
  /** Resolves to how it ended: `{ code, signal }`. */
  ended;
  #process;
  #listeners = new Set();

  constructor(name, script, ...args) {
    this.name = name;
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#process = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    running.add(this.#process);
    this.ended = once(this.#process, 'exit').then(([code, signal]) => {
      running.delete(this.#process);
      return { code, signal };
    });
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      for (const hear of this.#listeners) hear(line);
    });
  }

  /** Resolves to the words of the `count`th line that begins with the word `start`, in the moment in which it is read. */
  line(start, count = 1) {
    return new Promise((resolve, reject) => {
      let left = count;
      const hear = (line) => {
        const words = line.split(' ');
        if (words[0] !== start) return;
        left -= 1;
        if (left > 0) return;
        this.#listeners.delete(hear);
        resolve(words);
      };
      this.#listeners.add(hear);
      void this.ended.then(({ code, signal }) =>
        reject(new Error(`${this.name} ended (${signal ?? code}) before it said "${start}"`)),
      );
    });
  }

  kill() {
    this.#process.kill('SIGKILL');
    return this.ended;
  }

  /** Asks it to stop; fails unless it then leaves with 0. */
  async stop() {
    this.#process.kill('SIGTERM');
    const { code, signal } = await this.ended;
    if (code !== 0) throw new Error(`${this.name} did not stop in peace: it ended with ${signal ?? code}`);
  }
}
