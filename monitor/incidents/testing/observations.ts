/** What sensors say of incidents, for tests. */
import { randomUUID } from 'node:crypto';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';

/** Times that most tests give by themselves; the others follow from them. */
export interface ObservationPart extends Partial<Omit<IncidentObservation, 'peak' | 'target'>> {
  startedAtMs: number;
  /** An address, when a text. */
  target?: IncidentObservation['target'] | string;
  bps?: number;
  pps?: number;
}

/** A SYN flood on 198.51.100.7 that a capture of the uplink sees, active unless `recoveredAtMs` says otherwise. */
export function observation(part: ObservationPart): IncidentObservation {
  const { bps = 12_000_000, pps = 25_000, target = '198.51.100.7', recoveredAtMs = null, ...rest } = part;
  const lastObservedAtMs = rest.lastObservedAtMs ?? rest.startedAtMs + 3000;
  const className = rest.class ?? 'syn_flood';
  return {
    id: randomUUID(),
    revision: 1,
    capture: 'eth0',
    direction: 'inbound',
    class: className,
    severity: 'attack',
    vectors: [{ class: className, packetsShare: 0.9, bytesShare: 0.8, ports: [443] }],
    detectedAtMs: rest.startedAtMs + 2000,
    totals: { bytes: 4_500_000, packets: 75_000 },
    coverage: 'complete',
    deviceKey: '',
    threshold: { metric: 'syn_pps', value: 10_000 },
    remotes: [{ prefix: '203.0.113.0/24', share: 0.5 }],
    seconds: [{ atMs: lastObservedAtMs - 1000, bps, pps }],
    drill: false,
    hasEvidence: false,
    ...rest,
    lastObservedAtMs,
    recoveredAtMs,
    state: recoveredAtMs === null ? 'active' : 'recovered',
    current: recoveredAtMs === null ? { bps, pps } : null,
    peak: { bps, bpsAtMs: rest.startedAtMs + 1000, pps, ppsAtMs: rest.startedAtMs + 1000 },
    target: typeof target === 'string' ? { kind: 'host', value: target } : target,
  };
}

/** Uploads of incidents out of one spool. */
export function createIncidentSpool(): (...incidents: IncidentObservation[]) => TelemetryUpload {
  const spoolId = randomUUID();
  let sequence = 0;
  return (...incidents) => {
    sequence += 1;
    return { spoolId, sequence, sensorVersion: '0.2.0', minutes: [], gaps: [], incidents };
  };
}
