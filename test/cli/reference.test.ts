import { expect, test } from 'vitest';
import { contextForHelp } from '../../scripts/cli-reference.ts';
import { notesOf } from '../../src/cli/command.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { newWorld } from './world.ts';

test('no command is without an example, a JSON shape and --json', async () => {
  const world = await newWorld();
  for (const command of buildProgram(contextForHelp(), '0').commands) {
    if (command.name() === 'help') continue;
    const notes = notesOf(command);
    expect(notes?.json).toMatch(/./);
    expect(notes?.examples.length).toBeGreaterThan(0);
    expect(command.options.map(({ long }) => long)).toContain('--json');
    const { stdout, exit } = await world.run(command.name(), '--help');
    expect(exit).toBe('success');
    for (const example of notes?.examples ?? []) expect(stdout).toContain(`$ ${example}`);
  }
});
