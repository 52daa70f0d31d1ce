/** Handmade packets of one class, from spoofed sources, through the internet's link. */
import { links } from '../world/networks.ts';
import { type AttackOrder, sourcesOf } from './attack-order.ts';
import { openFrameSender } from './frame-sender.ts';
import type { PacketClass } from './packet-shapes.ts';
import { createShape } from './packet-shapes.ts';
import type { AttackSender } from './senders.ts';
import { createSources } from './sources.ts';

/** Reflectors are few, compared with the sources that are made up. */
const reflectorsMax = 1024;

export function openPacketFlood(order: AttackOrder, packetClass: PacketClass): AttackSender {
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
