/** What an attack is: its class, target, rate and duration, each bounded, read from a command line. */

import { CodedError } from '#common/errors/index.ts';
import {
  canonicalAddress,
  formatPrefix,
  type Prefix,
  parseAddress,
  prefixContains,
} from '#common/ip/index.ts';
import { attackSources } from '../world/networks.ts';
import { type PacketClass, packetClasses } from './packet-shapes.ts';

/** Classes made of real TCP connections, whose sources hold them. */
export const connectionClasses = ['connection_flood', 'high_volume'] as const;

export const attackClasses = [...packetClasses, ...connectionClasses] as const;
export type AttackClass = (typeof attackClasses)[number];

export const perSecondMax = 200_000;
export const secondsMax = 600;

export interface AttackOrder {
  /** Canonical. */
  target: string;
  attackClass: AttackClass;
  /** Packets; of `connection_flood`, connections. */
  perSecond: number;
  seconds: number;
  /** Canonical; null: many sources. */
  from: string | null;
}

/** The command line's words. */
export interface AttackWords {
  target: string;
  class: string;
  pps: string;
  seconds: string;
  from: string;
}

/** Reads and bounds an order; throws `lab.attack_invalid` with what to mend. */
export function readOrder(words: AttackWords): AttackOrder {
  const target = canonicalAddress(words.target);
  if (target === null) throw invalid(`--target must be an IP address, not "${words.target}"`);
  const attackClass = attackClasses.find((known) => known === words.class);
  if (!attackClass) throw invalid(`--class must be one of ${attackClasses.join(', ')}, not "${words.class}"`);
  return {
    target,
    attackClass,
    perSecond: readCount('--pps', words.pps, perSecondMax),
    seconds: readCount('--seconds', words.seconds, secondsMax),
    from: words.from === 'outside' ? null : readSource(words.from, attackClass, target),
  };
}

/** The addresses that may attack `target`: of the lab's own part of a documentation or benchmark range. */
export function sourcesOf(attackClass: AttackClass, target: string): Prefix {
  const family = target.includes(':') ? 'ipv6' : 'ipv4';
  return isPacketClass(attackClass) ? attackSources.spoofed[family] : attackSources.connecting[family];
}

export function isPacketClass(attackClass: AttackClass): attackClass is PacketClass {
  return (packetClasses as readonly string[]).includes(attackClass);
}

function readCount(option: string, text: string, max: number): number {
  const count = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > max)
    throw invalid(`${option} must be a whole number from 1 to ${max}, not "${text}"`);
  return count;
}

function readSource(text: string, attackClass: AttackClass, target: string): string {
  const address = canonicalAddress(text);
  const allowed = sourcesOf(attackClass, target);
  if (address === null || !prefixContains(allowed, parseAddress(address)!))
    throw invalid(
      `--from must be "outside" or, for ${attackClass} on this target, inside ${formatPrefix(allowed)}, not "${text}"`,
    );
  return address;
}

function invalid(message: string): CodedError {
  return new CodedError('lab.attack_invalid', message);
}
