/** The incidents of a capture as JSON. */
import { protocolTitle } from '#contracts/ip-protocols.ts';
import type { Incident } from '#sensor/detector/index.ts';
import { incidentReasonJson, largeTargetJson } from './detect-explain.ts';
import type { Detection } from './detection.ts';
import { formatInstant, formatMs } from './instants.ts';

/** One JSON object, with a line break at its end. `explains`: with reasons, and the largest other targets. */
export function detectionJson(detection: Detection, explains: boolean): string {
  const { packets, firstAt, lastAt, result, isWhole } = detection;
  const { complete, ticks, hosts, overflowed, evictedPairs, incidents } = result;
  const answer = {
    capture: { packets, first_at: formatInstant(firstAt), last_at: formatInstant(lastAt) },
    detector: { complete: complete && isWhole, ticks, hosts, overflowed, evicted_pairs: evictedPairs },
    incidents: incidents.map((one) => ({
      ...incidentJson(one),
      ...(explains && { reason: incidentReasonJson(one) }),
    })),
    ...(explains && { largest_others: result.largestOthers.map(largeTargetJson) }),
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

function incidentJson(one: Incident) {
  return {
    target: one.target,
    direction: one.direction,
    class: one.class,
    severity: one.severity,
    vectors: vectorsOf(one),
    started_at: formatMs(one.startedAt),
    detected_at: formatMs(one.detectedAt),
    recovered_at: one.recoveredAt === null ? null : formatMs(one.recoveredAt),
    peak: { bps: Math.round(one.peak.bps), pps: Math.round(one.peak.pps) },
    bytes: Math.round(one.totals.bytes),
    packets: Math.round(one.totals.packets),
    top_sources: sourcesOf(one).map(({ prefix, share }) => ({
      prefix,
      share: Math.round(share * 1e4) / 1e4,
    })),
  };
}

/** All vectors that it had; those of its latest seconds have shares. */
function vectorsOf({ class: name, vectors, vectorTimes, startedAt, lastObservedAt, peak }: Incident) {
  const times = [...vectorTimes];
  if (name === 'high_volume')
    times.push({
      ...{ class: name, startedAt, lastObservedAt, peak, ports: vectors[0]!.ports },
      ...{ sourcePorts: [], protocols: [] },
    });
  return times.map((one) => {
    const latest = vectors.find((vector) => vector.class === one.class);
    return {
      class: one.class,
      packets_share: latest?.packets_share ?? 0,
      bytes_share: latest?.bytes_share ?? 0,
      ports: one.ports,
      source_ports: one.sourcePorts,
      protocols: one.protocols.map((number) => ({ number, name: protocolTitle(number) })),
      started_at: formatMs(one.startedAt),
      last_observed_at: formatMs(one.lastObservedAt),
      peak: { bps: Math.round(one.peak.bps), pps: Math.round(one.peak.pps) },
    };
  });
}

/** The sources of an inbound incident. */
export function sourcesOf({ direction, remotes }: Incident): Incident['remotes'] {
  return direction === 'inbound' ? remotes : [];
}
