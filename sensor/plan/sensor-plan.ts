/** A plan as this sensor understands it, and what a monitor of its versions understands of the sensor. */
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';

/** NET-8: local CIDRs of a site, and entries of a plan. */
const localPrefixesMax = 128;
const protectedAddressesMax = 4096;
const probesMax = 32;

export interface SensorPlan {
  /** Canonical text. They decide which endpoint is local, nothing else (NET-2.2.8). */
  localPrefixes: string[];
  /** Exact addresses of live allocations. */
  protectedAddresses: string[];
  /** The monitor takes usage rows (NET-9.4). */
  takesUsage: boolean;
  /** The monitor tells recognised IP protocols apart (NET-2.2.4). */
  takesProtocolNames: boolean;
  /** The monitor takes live windows (NET-9.1). */
  takesLive: boolean;
  /** What to measure; none for a monitor that takes no results. */
  probes: PlanProbe[];
  /** Entries that are no addresses, or no probes that this sensor knows. */
  ignoredEntries: number;
}

/** What a plan says of the credential it was fetched with, apart from what the sensor is to do: that is stored, this not. */
export function splitPlan(body: unknown): { work: unknown; isRotationDue: boolean } {
  if (typeof body !== 'object' || body === null) return { work: body, isRotationDue: false };
  const { credential_version, credential, ...work } = body as Record<string, unknown>;
  const { rotate } = (credential ?? {}) as { rotate?: unknown };
  return { work, isRotationDue: credential_version === 1 && rotate === true };
}

/** The plan in this body, or null when it is none. Unknown fields are ignored. */
export function parsePlan(body: unknown): SensorPlan | null {
  if (typeof body !== 'object' || body === null) return null;
  const fields = body as Record<string, unknown>;
  if (fields.plan_version !== 1) return null;
  const cidrs = textList(fields.local_cidrs);
  const targets = textList(fields.protected_targets);
  const localPrefixes = cidrs.flatMap((text) => {
    const prefix = parsePrefix(text);
    return prefix ? [formatPrefix(prefix)] : [];
  });
  const protectedAddresses = targets.flatMap((text) => canonicalAddress(text) ?? []);
  const offered = fields.probes_version === 1 && Array.isArray(fields.probes) ? fields.probes : [];
  const probes = offered.flatMap((entry) => parseProbe(entry) ?? []);
  const ignored = cidrs.length - localPrefixes.length + targets.length - protectedAddresses.length;
  return {
    localPrefixes: localPrefixes.slice(0, localPrefixesMax),
    protectedAddresses: protectedAddresses.slice(0, protectedAddressesMax),
    takesUsage: isAdvertised(fields.application_usage_version),
    takesProtocolNames: isAdvertised(fields.application_protocol_version),
    takesLive: fields.live_version === 1,
    probes: probes.slice(0, probesMax),
    ignoredEntries: ignored + offered.length - probes.length,
  };
}

/** The minute without what this monitor would not understand. */
export function suitMonitor(minute: TelemetryMinute, plan: SensorPlan): TelemetryMinute {
  if (!plan.takesUsage) return { ...minute, usage: [] };
  if (plan.takesProtocolNames) return minute;
  const usage = minute.usage.map((row) => (row.evidence === 'ip_protocol' ? { ...row, name: 'IP' } : row));
  return { ...minute, usage };
}

/** Version 1 or a later one, which takes what version 1 takes. */
function isAdvertised(version: unknown): boolean {
  return Number.isSafeInteger(version) && (version as number) >= 1;
}

function textList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
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
