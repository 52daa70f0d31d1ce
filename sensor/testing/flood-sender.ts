/**
 * Sends the frames of the mixed capture repeatedly on an interface of this network namespace, and prints the sent
 * counts as JSON. Waits for a line on standard input first.
 *
 * usage: flood-sender.ts INTERFACE PACKETS KPPS    (0 kpps: no limit)
 */
import { once } from 'node:events';
import { openFrameSender } from './frame-sender.ts';
import { createMixedCapture } from './mixed-capture.ts';

const connections = 1500;
const burst = 64;

const [name, packetsText, kppsText] = process.argv.slice(2);
const packets = Number(packetsText);
const perMs = Number(kppsText);
const mixed = createMixedCapture(connections);
const frames = Array.from({ length: mixed.frames }, (_, i) => {
  const frame = Buffer.alloc(Math.max(mixed.wire[i]!, 60));
  frame.set(mixed.bytes.subarray(mixed.offsets[i]!, mixed.offsets[i]! + mixed.captured[i]!));
  return frame;
});
const sender = openFrameSender(name!, { bypassesQueue: true });
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const startedAt = performance.now();
let sent = 0;
while (sent < packets) {
  for (let i = 0; i < burst && sent < packets; i += 1, sent += 1) sender.send(frames[sent % frames.length]!);
  if (perMs > 0) while (performance.now() - startedAt < sent / perMs);
}
const seconds = (performance.now() - startedAt) / 1000;
sender.close();
process.stdout.write(`${JSON.stringify({ sent, kpps: sent / seconds / 1000 })}\n`);
process.exit(0);
