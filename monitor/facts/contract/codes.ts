/** The small numbers under which tables keep what the wire names; described in migration 0070. */
import type { TelemetryEvidence } from '#contracts/sensor-api/telemetry.ts';
import type { Direction, Vantage } from './facts.ts';

/** By strength, so that the largest code is the strongest evidence. */
const evidences: readonly TelemetryEvidence[] = [
  'none',
  'dns',
  'tls_outer',
  'http_connect',
  'http_host',
  'tls_sni',
  'ip_protocol',
];
const directions: readonly Direction[] = ['outbound', 'inbound', 'internal', 'transit'];
const evidenceCodes = new Map(evidences.map((evidence, code) => [evidence, code]));

export const evidenceCode = (evidence: TelemetryEvidence): number => evidenceCodes.get(evidence)!;
export const evidenceOf = (code: number): TelemetryEvidence => evidences[code]!;
export const directionCode = (direction: Direction): number => directions.indexOf(direction) + 1;
export const directionOf = (code: number): Direction => directions[code - 1]!;
export const vantageCode = (vantage: Vantage): number => (vantage === 'uplink' ? 1 : 2);
export const vantageOf = (code: number): Vantage => (code === 1 ? 'uplink' : 'bridge');
