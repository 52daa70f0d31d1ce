/**
 * What runs inside a guest: its HTTP and TLS servers and its client. Started by the world's supervisor with one JSON
 * argument; ends when the supervisor's channel closes, however that happened.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '#common/clock/index.ts';
import type { Exchange, Family, Protocol } from './exchanges.ts';
import { manyAddressesName } from './internet-plan.ts';
import { type ServiceSet, startOldServices } from './old-services.ts';
import { runChild } from './run-child.ts';
import { talk } from './talk.ts';
import { startWebService } from './web-service.ts';

export interface GuestProcessInput {
  families: Family[];
  outboundPerSecond: number;
  certificate: string;
  key: string;
  /** Served beside HTTP and TLS; null: nothing else is. */
  services: ServiceSet | null;
}

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

/** Every kind of exchange in turn, by each family in turn. */
function createRotation(families: readonly Family[], certificate: string): () => Exchange | null {
  // Guests that start together would ask the same site in the same second.
  let turn = Math.floor(Math.random() * rotation.length);
  return () => {
    const family = families[Math.floor(turn / rotation.length) % families.length];
    const step = rotation[turn % rotation.length]!;
    turn += 1;
    if (!family) return null;
    // The name with many addresses has IPv4 ones only, for both families.
    return { ...step, family: step.protocol === 'lookup' ? 4 : family, certificate };
  };
}

await runChild<GuestProcessInput>(async (input, signal, counts) => {
  await startWebService(input);
  if (input.services !== null) await startOldServices(input.services);
  const next = createRotation(input.families, readFileSync(input.certificate, 'utf8'));
  void talk({ clock: systemClock, perSecond: input.outboundPerSecond, next, signal }, counts);
});
