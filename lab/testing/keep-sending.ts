/** Sends the Ethernet frames of FILE again and again on INTERFACE, whenever there is one, until it is ended. */
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openFrameSender } from '#sensor/testing/frame-sender.ts';

const [interfaceName, file] = process.argv.slice(2) as [string, string];
const frames = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((line) => Buffer.from(line, 'hex'));
for (;;) {
  const sender = openFrameSender(interfaceName);
  try {
    for (;;) {
      for (const frame of frames) sender.send(frame);
      await nextTurn();
    }
  } catch {
    // The interface is gone; the next one may have its name.
    sender.close();
    await nextTurn();
  }
}
