/** What to measure from this host. */
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import { isAdvertised, type PlanFields, type ReadSection, readList } from './section.ts';

/** NET-8. */
const probesMax = 32;

export interface ProbesSection {
  /** None for a monitor that takes no results. */
  probes: PlanProbe[];
}

export function readProbes(fields: PlanFields): ReadSection<ProbesSection> {
  const offered = isAdvertised(fields.probes_version) ? fields.probes : [];
  const read = readList(offered, probesMax, parseProbe);
  return { ...read, values: { probes: read.values } };
}

/** A probe of a kind that this sensor knows, within its bounds; null for any other. */
function parseProbe(entry: unknown): PlanProbe | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const { id, kind, target, port, question, interval_seconds, timeout_ms } = entry as Record<string, unknown>;
  const isWhole = (value: unknown, min: number, max: number): value is number =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
  if (kind !== 'icmp' && kind !== 'tcp' && kind !== 'http' && kind !== 'dns') return null;
  if (!isWhole(id, 1, Number.MAX_SAFE_INTEGER) || !isWhole(interval_seconds, 1, 60)) return null;
  if (!isWhole(timeout_ms, 100, 10_000)) return null;
  if (typeof target !== 'string' || target === '' || target.length > 500) return null;
  const hasPort = kind === 'tcp' || kind === 'dns';
  if (hasPort && !isWhole(port, 1, 65_535)) return null;
  if (kind === 'dns' && (typeof question !== 'string' || question.length > 253)) return null;
  return {
    id,
    kind,
    target,
    port: hasPort ? (port as number) : null,
    question: kind === 'dns' ? (question as string) : null,
    interval_seconds,
    timeout_ms,
  };
}
