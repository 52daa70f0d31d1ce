/** A plan as this sensor understands it, and what a monitor of its versions understands of the sensor. */
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';

/** NET-8: local CIDRs of a site, and entries of a plan. */
const localPrefixesMax = 128;
const protectedAddressesMax = 4096;

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
  /** Entries that are no addresses. */
  ignoredEntries: number;
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
  return {
    localPrefixes: localPrefixes.slice(0, localPrefixesMax),
    protectedAddresses: protectedAddresses.slice(0, protectedAddressesMax),
    takesUsage: isAdvertised(fields.application_usage_version),
    takesProtocolNames: isAdvertised(fields.application_protocol_version),
    takesLive: fields.live_version === 1,
    ignoredEntries: cidrs.length - localPrefixes.length + targets.length - protectedAddresses.length,
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
