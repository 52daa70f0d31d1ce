/**
 * Sends one attack. Runs inside the lab's internet, started by `runAttack` with one JSON argument.
 *
 * It refuses to work in any other network namespace than its world's internet, and ends when its starter does, at
 * SIGTERM (with the lab) or when it is told to.
 */
import { readlinkSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { links } from '../world/networks.ts';
import { type AttackOrder, isPacketClass, sourcesOf } from './attack-order.ts';
import { type FloodProgress, flood } from './flood.ts';
import { openConnectionFlood } from './flood-connections.ts';
import { openFrameSender } from './frame-sender.ts';
import { createShape, type PacketClass } from './packet-shapes.ts';
import type { AttackSender } from './senders.ts';
import { createSources } from './sources.ts';
import { openUploads } from './uploads.ts';

/** Reflectors are few, compared with the sources that are made up. */
const reflectorsMax = 1024;

function openPacketFlood(order: AttackOrder, packetClass: PacketClass): AttackSender {
  const { target } = order;
  const random = createRandom32(Math.random() * 2 ** 32);
  const prefix = sourcesOf(packetClass, target);
  const hostsMax = packetClass === 'amplification' ? reflectorsMax : undefined;
  const sources = createSources(prefix, order.from, random, hostsMax);
  const shape = createShape(packetClass, { target, sources, random });
  const sender = openFrameSender(links.internet);
  return {
    send: (count) => sender.send(count, (bytes, at) => shape.write(bytes, at)),
    answered: () => null,
    close: () => sender.close(),
  };
}

/** Marsaglia's xorshift: varied enough for ports and addresses, and a few nanoseconds each. */
function createRandom32(seed: number): () => number {
  let state = (seed >>> 0) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

export interface AttackProcessInput {
  order: AttackOrder;
  /** Where it must find itself. */
  namespace: string;
}

export type AttackMessage =
  | { kind: 'begun' }
  | { kind: 'progress'; progress: FloodProgress }
  | { kind: 'over'; progress: FloodProgress; answered: number | null }
  | { kind: 'failed'; code: string; message: string };

const progressEveryMs = 1000;

function refuseOtherNamespace(namespace: string): void {
  const own = /\d+/.exec(readlinkSync('/proc/self/ns/net'))?.[0];
  if (own !== String(statSync(`/run/netns/${namespace}`).ino))
    throw new CodedError('lab.attack_failed', `This process is not in ${namespace}`);
}

/** A name in the namespace that one process can hold; the kernel frees it when the process ends. */
async function claimTarget(target: string): Promise<void> {
  const claim = createServer().unref();
  await new Promise<void>((resolve, reject) => {
    claim.once('error', () =>
      reject(new CodedError('lab.attack_running', `An attack on ${target} is under way; one at a time`)),
    );
    claim.listen(`\0svc-lab-attack/${target}`, resolve);
  });
}

function openSender(order: AttackOrder): AttackSender {
  const { attackClass } = order;
  if (isPacketClass(attackClass)) return openPacketFlood(order, attackClass);
  return attackClass === 'high_volume' ? openUploads(order) : openConnectionFlood(order);
}

async function attack({ order, namespace }: AttackProcessInput, signal: AbortSignal): Promise<AttackMessage> {
  refuseOtherNamespace(namespace);
  await claimTarget(order.target);
  const sender = openSender(order);
  const progress: FloodProgress = { sent: 0, elapsedMs: 0 };
  const timer = setInterval(() => say({ kind: 'progress', progress }), progressEveryMs);
  try {
    say({ kind: 'begun' });
    const { perSecond, seconds } = order;
    await flood({ clock: systemClock, perSecond, seconds, signal, send: sender.send }, progress);
  } finally {
    clearInterval(timer);
    sender.close();
  }
  return { kind: 'over', progress, answered: sender.answered() };
}

function say(message: AttackMessage, then?: () => void): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => then?.());
  else then?.();
}

const stopping = new AbortController();
process.on('disconnect', () => process.exit(0));
process.on('message', () => stopping.abort());
process.on('SIGTERM', () => stopping.abort());
// Ctrl-C reaches the whole group: the starter decides, so that it still gets the counts.
process.on('SIGINT', () => {});
const input = JSON.parse(process.argv[2] ?? '{}') as AttackProcessInput;
const last = await attack(input, stopping.signal).catch((error: unknown): AttackMessage => {
  const { code, message } = error as CodedError;
  return { kind: 'failed', code: code ?? 'lab.attack_failed', message };
});
say(last, () => process.exit(0));
