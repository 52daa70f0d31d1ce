import { randomUUID } from 'node:crypto';
import type { Incident } from '#contracts/admin-api/incidents.ts';
import { worldNowMs } from './world-time.ts';

/** An RFC 3339 time that lies so far back. */
export const secondsAgo = (seconds: number, nowMs = worldNowMs()) =>
  new Date(nowMs - seconds * 1000).toISOString();

/** An active SYN flood on this address, which began a minute ago. */
export function incidentOf(
  address: string,
  more: Partial<Incident> = {},
  nowMs: number = worldNowMs(),
): Incident {
  const started = secondsAgo(60, nowMs);
  const last = secondsAgo(1, nowMs);
  return {
    id: randomUUID(),
    revision: 1,
    target: { kind: 'host', value: address },
    direction: 'inbound',
    class: 'syn_flood',
    severity: 'attack',
    vectors: [{ class: 'syn_flood', packets_share: 0.97, bytes_share: 0.95, ports: [443] }],
    state: 'active',
    started_at: started,
    last_observed_at: last,
    recovered_at: null,
    detected_at: secondsAgo(57, nowMs),
    current: { bps: 12_000_000, pps: 25_000 },
    peak: { bps: 14_000_000, bps_at: last, pps: 31_000, pps_at: last },
    totals: { bytes: 90_000_000, packets: 1_500_000 },
    coverage: 'complete',
    drill: false,
    actions: [],
    ...more,
  };
}

/** The same incident after its end: the sensor's explicit recovery, one revision later. */
export function recovered(
  incident: Incident,
  more: Partial<Incident> = {},
  nowMs: number = worldNowMs(),
): Incident {
  return {
    ...incident,
    revision: incident.revision + 1,
    state: 'recovered',
    recovered_at: secondsAgo(1, nowMs),
    current: null,
    ...more,
  };
}
