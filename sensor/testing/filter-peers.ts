/**
 * The clients of a filtered link, and who attacks it. `clients`: TLS connections that last and send a line after each answer, and so many new ones a second; the
 * first line is `established` when all have conversed for over two seconds, then it waits for a line and prints what came of them.
 * `flood`: raw frames of an attack on 192.0.2.7 from made-up sources. Prints JSON.
 *
 * usage: filter-peers.ts clients HOST PORT LASTING PERSECOND | flood INTERFACE MAC CLASS PACKETS KPPS | idle
 */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { createFlood, type FloodClass } from './attack-traffic.ts';
import { openFrameSender } from './frame-sender.ts';

const conversedMs = 2300;
const patienceMs = 1500;
const made = 4000;
const burst = 64;
const triesMax = 100_000;

const [mode, ...words] = process.argv.slice(2);
if (mode === 'flood') sendFlood(words);
else if (mode === 'idle') await idle();
else await runClients(words);

function sendFlood([name, mac, of, packets, kpps]: string[]): void {
  const step = createFlood({ class: of as FloodClass, version: 4, direction: 'inbound', ratio: 1 }, 11);
  const frames = Array.from({ length: made }, () => {
    const frame = Buffer.from(step()[0]!);
    frame.set(Buffer.from(mac!.replaceAll(':', ''), 'hex'));
    return frame;
  });
  const sender = openFrameSender(name!, { bypassesQueue: true });
  // On a busy machine the queue of the wire is full for a moment.
  const push = (frame: Buffer): void => {
    for (let tries = 0; ; tries += 1)
      try {
        sender.send(frame);
        return;
      } catch (error) {
        if (tries === triesMax) throw error;
      }
  };
  const startedAt = performance.now();
  let sent = 0;
  while (sent < Number(packets)) {
    for (let i = 0; i < burst && sent < Number(packets); i += 1, sent += 1) push(frames[sent % made]!);
    if (kpps !== '0') while (performance.now() - startedAt < sent / Number(kpps));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  sender.close();
  process.stdout.write(`${JSON.stringify({ sent, seconds })}\n`);
}

/** The time of a flood without one. */
async function idle(): Promise<void> {
  const seconds = 5;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  process.stdout.write(`${JSON.stringify({ sent: 0, seconds })}\n`);
}

async function runClients([host, port, lasting, perSecond]: string[]): Promise<void> {
  const counts = { answers: 0, cut: 0, begun: 0, completed: 0 };
  const open = () => connect({ host: host!, port: Number(port), rejectUnauthorized: false });
  let [isCounting, isOver] = [false, false];
  const lines: TLSSocket[] = Array.from({ length: Number(lasting) }, () => {
    const socket = open();
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (!isOver) counts.cut += 1;
    });
    socket.on('secureConnect', () => socket.write('line\n'));
    socket.on('data', () => {
      counts.answers += 1;
      setTimeout(() => socket.write('line\n'), 20);
    });
    return socket;
  });
  const newest = setInterval(
    () => {
      if (Number(perSecond) === 0 || isOver) return;
      const isCounted = isCounting;
      if (isCounted) counts.begun += 1;
      const socket = open();
      socket.setTimeout(patienceMs, () => socket.destroy());
      socket.on('error', () => socket.destroy());
      socket.on('secureConnect', () => socket.write('hello\n'));
      socket.on('data', () => {
        if (isCounted) counts.completed += 1;
        socket.destroy();
      });
    },
    1000 / Math.max(1, Number(perSecond)),
  );
  const startedAt = performance.now();
  while (performance.now() - startedAt < conversedMs || counts.answers < lines.length * 3)
    await new Promise((resolve) => setTimeout(resolve, 50));
  process.stdout.write('established\n');
  counts.answers = 0;
  isCounting = true;
  await once(process.stdin, 'data');
  clearInterval(newest);
  // The last ones have their patience too.
  if (Number(perSecond) > 0) await new Promise((resolve) => setTimeout(resolve, patienceMs));
  // Each lasting connection still converses.
  const answersBefore = counts.answers;
  while (counts.answers < answersBefore + lines.length && counts.cut === 0)
    await new Promise((resolve) => setTimeout(resolve, 50));
  isOver = true;
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  process.exit(0);
}
