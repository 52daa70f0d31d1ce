/**
 * What runs inside a guest: its HTTP and TLS servers and its client. Started by the world's supervisor with one JSON
 * argument; ends when the supervisor's channel closes, however that happened.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '#common/clock/index.ts';
import { createChoice } from './choose-exchange.ts';
import type { Family } from './exchanges.ts';
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

await runChild<GuestProcessInput>(async (input, signal, counts) => {
  await startWebService(input);
  if (input.services !== null) await startOldServices(input.services);
  const { families, outboundPerSecond: perSecond } = input;
  const certificate = readFileSync(input.certificate, 'utf8');
  const next = createChoice({ families, certificate, clock: systemClock, random: Math.random });
  void talk({ clock: systemClock, perSecond, next, signal }, counts);
});
