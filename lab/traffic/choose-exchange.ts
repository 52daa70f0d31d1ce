/**
 * What a guest does next, by turns: one of the sites of the plan, each in its turn, and one of the services, as often as its place
 * in their list and the hour of the day make it likely. So every site is heard of soon, and the services make a long tail.
 */
import type { Exchange, Family, Protocol } from './exchanges.ts';
import { manyAddressesName } from './internet-plan.ts';
import { chooseService } from './services.ts';

const rotation: readonly { protocol: Protocol; host: string; bytes: number }[] = [
  { protocol: 'https', host: 'www.example.com', bytes: 12_000 },
  { protocol: 'http', host: 'updates.example.edu', bytes: 20_000 },
  { protocol: 'https', host: 'cdn.example.net', bytes: 30_000 },
  { protocol: 'time', host: 'time.example.org', bytes: 0 },
  { protocol: 'https', host: 'api.example.org', bytes: 1_500 },
  { protocol: 'whois', host: 'whois.example.net', bytes: 0 },
  { protocol: 'https', host: 'static.example.com', bytes: 8_000 },
  { protocol: 'http', host: 'www.example.com', bytes: 2_500 },
  { protocol: 'lookup', host: manyAddressesName, bytes: 0 },
];

export interface ChoiceOptions {
  families: readonly Family[];
  certificate: string;
  clock: { nowMs(): number };
  /** From 0 to 1. */
  random: () => number;
}

/** Null for a guest without an address. */
export function createChoice({ families, certificate, clock, random }: ChoiceOptions): () => Exchange | null {
  // Guests that start together would ask the same site in the same second.
  let turn = Math.floor(random() * rotation.length) * 2;
  return () => {
    const place = Math.floor(turn / 2);
    const isSite = turn % 2 === 0;
    const family = families[Math.floor(place / rotation.length) % families.length];
    turn += 1;
    if (!family) return null;
    if (isSite) {
      const step = rotation[place % rotation.length]!;
      // The name with many addresses has IPv4 ones only, for both families.
      return { ...step, family: step.protocol === 'lookup' ? 4 : family, certificate };
    }
    const { name, kind, bytes, sentBytes } = chooseService(clock.nowMs(), random());
    return { protocol: kind, host: name, family, bytes, sentBytes, certificate };
  };
}
