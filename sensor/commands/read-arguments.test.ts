import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import type { ReadOptions } from '#sensor/capture-reader/index.ts';
import { addCommands } from '#sensor/main.ts';
import { lookAtArguments } from './read-arguments.ts';

/** Commander's result for the same command line. */
async function commanderSays(args: string[]): Promise<{ files: string[]; options: ReadOptions }> {
  const program = new Command('sensor');
  addCommands(program);
  const read = program.commands.find((command) => command.name() === 'read')!;
  let found: { files: string[]; options: ReadOptions } | undefined;
  read.action((files: string[], options: ReadOptions) => {
    found = { files, options };
  });
  await program.parseAsync(['read', ...args], { from: 'user' });
  return found!;
}

test('sensor read: a plain command line is parsed directly, with the result of commander', async () => {
  const lines = [
    ['a.pcap'],
    ['-'],
    ['a.pcap', 'b.pcap', '--json'],
    ['--json', '--minutes', 'a.pcap'],
    ['a.pcap', '--top', '30', '--top', '5', '--sort', 'time'],
    ['--host', '192.0.2.1', 'a.pcap', '--host', '2001:db8::/32', '--name', '*.example.com'],
    ['a.pcap', '--from', '+90s', '--to', '2026-01-31T12:00:00Z'],
    ['a.pcap', '--port', '443', '--protocol', 'tcp', '--local', '192.0.2.0/24', '--sort', 'nonsense'],
    ['a.pcap', '--name', ''],
  ];
  for (const line of lines)
    assert.deepEqual(lookAtArguments(line), await commanderSays(line), line.join(' '));
});

test('sensor read: any other command line is left to commander', () => {
  const lines = [
    [],
    ['--json'],
    ['--help'],
    ['a.pcap', '-h'],
    ['a.pcap', '--unknown'],
    ['a.pcap', '--top'],
    ['a.pcap', '--top=3'],
    ['a.pcap', '--name', '--json'],
    ['--', '-a.pcap'],
    ['a.pcap', '--jso'],
  ];
  for (const line of lines) assert.equal(lookAtArguments(line), null, line.join(' '));
});
