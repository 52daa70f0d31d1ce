/**
 * Sends the frames of the mixed capture repeatedly on an interface of this network namespace, or each on several, and prints the sent
 * counts as JSON. Waits for a line on standard input first. `flood` sends packets of ever new flows to 16 addresses of
 * 192.0.2.0/24 instead, `wide` to 10.1.0.0/16.
 *
 * usage: flood-sender.ts INTERFACE[,INTERFACE…] PACKETS KPPS [mixed | flood | wide]    (0 kpps: no limit)
 */
import { once } from 'node:events';
import { createFlood } from './flood-capture.ts';
import { openFrameSender } from './frame-sender.ts';
import { createMixedCapture } from './mixed-capture.ts';

const connections = 1500;
const burst = 64;
const lateMsMax = 20;

const [names, packetsText, kppsText, traffic = 'mixed'] = process.argv.slice(2);
const packets = Number(packetsText);
const perMs = Number(kppsText);
const nextFrame = traffic === 'mixed' ? mixedFrames() : floodFrames(traffic === 'wide');
const senders = names!.split(',').map((name) => openFrameSender(name, { bypassesQueue: true }));
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const begunAt = performance.now();
let startedAt = begunAt;
let sent = 0;
while (sent < packets) {
  for (let i = 0; i < burst && sent < packets; i += 1, sent += 1) {
    const frame = nextFrame(sent);
    for (const sender of senders) sender.send(frame);
  }
  if (perMs === 0) continue;
  // What could not be sent in time is not made up for by a burst.
  startedAt = Math.max(startedAt, performance.now() - sent / perMs - lateMsMax);
  while (performance.now() - startedAt < sent / perMs);
}
const seconds = (performance.now() - begunAt) / 1000;
for (const sender of senders) sender.close();
process.stdout.write(`${JSON.stringify({ sent, kpps: sent / seconds / 1000 })}\n`);
process.exit(0);

function mixedFrames(): (i: number) => Buffer {
  const mixed = createMixedCapture(connections);
  const frames = Array.from({ length: mixed.frames }, (_, i) => {
    const frame = Buffer.alloc(Math.max(mixed.wire[i]!, 60));
    frame.set(mixed.bytes.subarray(mixed.offsets[i]!, mixed.offsets[i]! + mixed.captured[i]!));
    return frame;
  });
  return (i) => frames[i % frames.length]!;
}

function floodFrames(isWide: boolean): (i: number) => Buffer {
  const flood = createFlood(Date.now());
  // Frames of the flood are three arrays that change, one for each kind of packet.
  const buffers = new Map<Uint8Array, Buffer>();
  return (i) => {
    const bytes = flood.next();
    let frame = buffers.get(bytes);
    if (!frame) {
      frame = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      buffers.set(bytes, frame);
    }
    if (isWide) {
      const host = Math.imul(i, 40_503) & 0xffff;
      frame[30] = 10;
      frame[31] = 1;
      frame[32] = host >>> 8;
      frame[33] = host & 255;
    }
    return frame;
  };
}
