/**
 * What runs inside the internet: resolver, sites, and the clients that call the guests' servers. The supervisor tells
 * it which guests there are.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '#common/clock/index.ts';
import { startDnsService } from './dns-service.ts';
import type { Exchange, Family } from './exchanges.ts';
import { clientSites, nameHostedSite } from './internet-plan.ts';
import { runChild } from './run-child.ts';
import { talk } from './talk.ts';
import { startWebService } from './web-service.ts';
import { startWireServices } from './wire-services.ts';

export interface InternetProcessInput {
  inboundPerSecond: number;
  certificate: string;
  key: string;
}

export interface HostedGuest {
  name: string;
  addresses: string[];
}

/** Calls one guest's addresses and protocols in turn. */
function createCalls(guest: HostedGuest, certificate: string): () => Exchange | null {
  let turn = Math.floor(Math.random() * 12);
  return () => {
    const address = guest.addresses[turn % guest.addresses.length];
    const round = Math.floor(turn / Math.max(1, guest.addresses.length));
    turn += 1;
    if (!address) return null;
    const family: Family = address.includes(':') ? 6 : 4;
    const site = clientSites[round % clientSites.length]!;
    return {
      protocol: round % 3 === 2 ? 'http' : 'https',
      host: nameHostedSite(guest.name),
      family,
      address,
      bytes: 3_000 + (round % 4) * 2_500,
      localAddress: family === 4 ? site.ipv4 : site.ipv6,
      certificate,
    };
  };
}

await runChild<InternetProcessInput>(async (input, signal, counts) => {
  const certificate = readFileSync(input.certificate, 'utf8');
  const callers = new Map<string, { guest: HostedGuest; stop: AbortController }>();
  await startDnsService((name) => {
    for (const { guest } of callers.values()) if (nameHostedSite(guest.name) === name) return guest.addresses;
    return null;
  });
  await startWebService(input);
  await startWireServices(input);
  signal.addEventListener('abort', () => {
    for (const caller of callers.values()) caller.stop.abort();
  });
  process.on('message', (message: { guests: HostedGuest[] }) => {
    const wanted = new Map(message.guests.map((guest) => [guest.name, guest]));
    for (const [name, caller] of callers) {
      if (JSON.stringify(wanted.get(name)) === JSON.stringify(caller.guest)) continue;
      caller.stop.abort();
      callers.delete(name);
    }
    for (const guest of wanted.values()) {
      if (callers.has(guest.name)) continue;
      const stop = new AbortController();
      callers.set(guest.name, { guest, stop });
      const next = createCalls(guest, certificate);
      void talk({ clock: systemClock, perSecond: input.inboundPerSecond, next, signal: stop.signal }, counts);
    }
  });
});
