/** Sends the Ethernet frames of FILE, one in hexadecimal digits on each line, unchanged on INTERFACE. */
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openFrameSender } from '#sensor/testing/frame-sender.ts';

const [interfaceName, file] = process.argv.slice(2) as [string, string];
const sender = openFrameSender(interfaceName);
for (const [i, line] of readFileSync(file, 'utf8').trim().split('\n').entries()) {
  sender.send(Buffer.from(line, 'hex'));
  // Other senders and the captures take turns with this one.
  if (i % 8 === 7) await nextTurn();
}
sender.close();
