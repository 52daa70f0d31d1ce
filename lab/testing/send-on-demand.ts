/**
 * Sends the Ethernet frames of FILE on INTERFACE again and again, and in between, once, those of each file that a line of input
 * names; then it prints a line.
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { openFrameSender } from '#sensor/testing/frame-sender.ts';

const [interfaceName, file] = process.argv.slice(2) as [string, string];
const sender = openFrameSender(interfaceName);
const framesOf = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => Buffer.from(line, 'hex'));
createInterface({ input: process.stdin })
  .on('line', (path) => {
    for (const frame of framesOf(path)) sender.send(frame);
    process.stdout.write('sent\n');
  })
  .on('close', () => process.exit());
const frames = framesOf(file);
for (;;) {
  for (const frame of frames) sender.send(frame);
  // Between two rounds captures have their turn.
  await wait(5);
}
