/**
 * Sends floods at exact rates on an interface of this network namespace, one after another, as lines on standard input
 * ask for them: `{"class", "version", "target", "perSecond"}` begins one, `stop` ends it. Says when the first packet was
 * sent and, at the end, how many there were in each tenth of a second.
 *
 * usage: paced-flood.ts INTERFACE
 */
import { createInterface } from 'node:readline';
import { setImmediate as turn } from 'node:timers/promises';
import { parseAddress } from '#common/ip/index.ts';
import { createFlood, type FloodClass } from './attack-traffic.ts';
import { openFrameSender } from './frame-sender.ts';

export interface PacedOrder {
  class: FloodClass;
  version: 4 | 6;
  target: string;
  perSecond: number;
}

export type PacedReport = { startedAt: number } | { sent: number[]; seconds: number };

const differentFrames = 500;
/** Packets that a stall of the machine left unsent for longer are not sent later. */
const lateMs = 100;

const sender = openFrameSender(process.argv[2]!, { bypassesQueue: true });
const say = (report: PacedReport) => process.stdout.write(`${JSON.stringify(report)}\n`);
let isStopped = true;
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'stop') isStopped = true;
  else if (isStopped) {
    isStopped = false;
    void flood(JSON.parse(line) as PacedOrder);
  }
}
process.exit(0);

async function flood(order: PacedOrder): Promise<void> {
  const frames = framesOf(order);
  const perMs = order.perSecond / 1000;
  const sent: number[] = [];
  let count = 0;
  let skipped = 0;
  const from = performance.now();
  say({ startedAt: performance.timeOrigin + from });
  while (!isStopped) {
    const elapsed = performance.now() - from;
    const due = Math.floor(elapsed * perMs) + 1 - skipped;
    if (due - count > lateMs * perMs + 1) skipped += due - count - Math.ceil(perMs);
    else {
      for (; count < due; count += 1) sender.send(frames[count % differentFrames]!);
      sent[Math.floor(elapsed / 100)] = count;
    }
    await turn();
  }
  say({ sent: [...sent].map((one) => one ?? 0), seconds: (performance.now() - from) / 1000 });
}

function framesOf(order: PacedOrder): Buffer[] {
  const step = createFlood({ ...order, direction: 'inbound', ratio: 1 }, 1);
  const target = parseAddress(order.target)!;
  return Array.from({ length: differentFrames }, () => {
    const frame = Buffer.from(step()[0]!);
    frame.set(target, order.version === 4 ? 30 : 38);
    return frame;
  });
}
