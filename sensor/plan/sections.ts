import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { attackClasses, attackClassOf } from '#contracts/attack-classes.ts';
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import {
  additionalCidrsMax,
  drillsMax,
  metrics,
  thresholdGroupsMax,
  thresholdMax,
  thresholdMin,
  vectorPortsMax,
} from '#contracts/sensor-api/detection.ts';
import { filterRulesMax, type PacketMatch, packetBytesMax } from '#contracts/sensor-api/filter.ts';
import type { PlanOwners, PlanProbe } from '#contracts/sensor-api/http.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { type Drill, type ThresholdGroup, type Thresholds, withDefaults } from '#sensor/detector/index.ts';
import type { FilterRule } from '#sensor/kernel/index.ts';

/** What every section's reader gives, and how versions and lists are read. */

/** A plan as it came: fields that this sensor does not know are ignored. */
export type PlanFields = Readonly<Record<string, unknown>>;

/** What a reader made of its section. */
interface ReadSection<Values> {
  values: Values;
  /** Entries that this sensor does not understand. */
  ignored: number;
  /** Entries above this sensor's bound. */
  leftOut: number;
}

/** Version 1 or a later one, which takes what version 1 takes. */
function isAdvertised(version: unknown): boolean {
  return Number.isSafeInteger(version) && (version as number) >= 1;
}

/** A section without a list. */
function versionsOnly<Values>(values: Values): ReadSection<Values> {
  return { values, ignored: 0, leftOut: 0 };
}

/** The entries that the parser understands, within the bound; a field that is no list has none. */
function readList<Entry>(
  field: unknown,
  entriesMax: number,
  parse: (entry: unknown) => Entry | null,
): ReadSection<Entry[]> {
  const offered: unknown[] = Array.isArray(field) ? field : [];
  const entries = offered.map(parse).filter((entry) => entry !== null);
  return {
    values: entries.slice(0, entriesMax),
    ignored: offered.length - entries.length,
    leftOut: Math.max(0, entries.length - entriesMax),
  };
}

// What the monitor takes in a minute, and the minute without the rest (NET-9.4).

export interface CaptureSection {
  /** The monitor takes usage rows (NET-9.4). */
  takesUsage: boolean;
  /** The monitor tells recognised IP protocols apart (NET-2.2.4). */
  takesProtocolNames: boolean;
}

export function readCapture(fields: PlanFields): ReadSection<CaptureSection> {
  return versionsOnly({
    takesUsage: isAdvertised(fields.application_usage_version),
    takesProtocolNames: isAdvertised(fields.application_protocol_version),
  });
}

/** The minute without what this monitor would not understand. */
export function downgradeForMonitor(minute: TelemetryMinute, plan: CaptureSection): TelemetryMinute {
  if (!plan.takesUsage) return { ...minute, usage: [] };
  if (plan.takesProtocolNames) return minute;
  const usage = minute.usage.map((row) => (row.evidence === 'ip_protocol' ? { ...row, name: 'IP' } : row));
  return { ...minute, usage };
}

// What the detector protects beside the targets, by which thresholds, and which drills run.

/** NET-8: as many as protected targets. */
const groupPrefixesMax = 4096;
const drillSecondsMax = 3600;

export interface DetectionSettings {
  /** Canonical prefixes, protected beside the targets. */
  additionalPrefixes: string[];
  thresholds: Thresholds;
  groups: ThresholdGroup[];
  drills: Drill[];
  /** The monitor wants capture files of attacks. */
  takesEvidence: boolean;
}

export interface DetectionSection {
  /** Null for a monitor that takes no incidents: nothing is detected for it. */
  detection: DetectionSettings | null;
}

/** Counts what is left out. */
class Omitted {
  ignored = 0;
  leftOut = 0;

  list<Entry>(field: unknown, max: number, parse: (entry: unknown) => Entry | null): Entry[] {
    const read = readList(field, max, parse);
    if (field !== undefined && !Array.isArray(field)) this.ignored += 1;
    this.ignored += read.ignored;
    this.leftOut += read.leftOut;
    return read.values;
  }

  /** A value that is not a rate is ignored, and its default counts. */
  thresholds(fields: Record<string, unknown>): Thresholds {
    const of = (direction: 'inbound' | 'outbound') => {
      const values: Record<string, number> = {};
      const offered = fields[direction];
      if (offered === undefined) return values;
      if (!isRecord(offered)) {
        this.ignored += 1;
        return values;
      }
      for (const [name, value] of Object.entries(offered)) {
        const isKnown = metrics.some((metric) => metric === name);
        const isRate = typeof value === 'number' && value >= thresholdMin && value <= thresholdMax;
        if (!isKnown || (value !== null && !isRate)) this.ignored += 1;
        else values[name] = value === null ? Number.POSITIVE_INFINITY : (value as number);
      }
      return values;
    };
    return withDefaults({ inbound: of('inbound'), outbound: of('outbound') });
  }
}

export function readDetection(fields: PlanFields): ReadSection<DetectionSection> {
  if (!isAdvertised(fields.detection_version)) return { values: { detection: null }, ignored: 0, leftOut: 0 };
  const omitted = new Omitted();
  const section = isRecord(fields.detection) ? fields.detection : {};
  if (fields.detection !== undefined && !isRecord(fields.detection)) omitted.ignored += 1;
  const detection: DetectionSettings = {
    additionalPrefixes: omitted.list(section.additional_cidrs, additionalCidrsMax, parseCidr),
    thresholds: omitted.thresholds(section),
    groups: omitted.list(section.groups, thresholdGroupsMax, (entry) => parseGroup(entry, omitted)),
    drills: omitted.list(section.drills, drillsMax, parseDrill),
    takesEvidence: section.takes_evidence === true,
  };
  return { values: { detection }, ignored: omitted.ignored, leftOut: omitted.leftOut };
}

function parseGroup(entry: unknown, omitted: Omitted): ThresholdGroup | null {
  if (!isRecord(entry)) return null;
  const prefixes = omitted.list(entry.prefixes, groupPrefixesMax, parseCidr);
  return prefixes.length === 0 ? null : { prefixes, thresholds: omitted.thresholds(entry) };
}

function parseCidr(entry: unknown): string | null {
  const prefix = typeof entry === 'string' ? parsePrefix(entry) : null;
  return prefix && formatPrefix(prefix);
}

/** A drill with a class that this sensor knows, within its bounds; null for any other. */
function parseDrill(entry: unknown): Drill | null {
  if (!isRecord(entry)) return null;
  const target = typeof entry.target === 'string' ? canonicalAddress(entry.target) : null;
  const direction = attackDirections.find((one) => one === entry.direction);
  const name = attackClasses.find((one) => one === entry.class);
  const isAmount = (value: unknown): value is number =>
    typeof value === 'number' && value >= 0 && value <= thresholdMax;
  const { pps, bps, seconds, started_at: startedAt } = entry;
  const startedAtMs = typeof startedAt === 'string' ? Date.parse(startedAt) : Number.NaN;
  if (target === null || !direction || !name || !isAmount(pps) || !isAmount(bps)) return null;
  if (!Number.isInteger(seconds) || (seconds as number) < 1 || (seconds as number) > drillSecondsMax)
    return null;
  if (!Number.isFinite(startedAtMs)) return null;
  return { target, direction, class: name, pps, bps, startedAtMs, seconds: seconds as number };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// What the filter at uplinks drops, or counts.

export interface FilterSection {
  /** Null for a monitor that takes nothing of it: then nothing is filtered for it. */
  filterRules: FilterRule[] | null;
}

export function readFilter(fields: PlanFields): ReadSection<FilterSection> {
  if (!isAdvertised(fields.filter_version)) return { values: { filterRules: null }, ignored: 0, leftOut: 0 };
  const [inbound, outbound] = [fields.filter_rules, fields.outbound_filter_rules].map((list, i) =>
    readList(list, filterRulesMax, (entry) => parseRule(entry, attackDirections[i]!)),
  ) as [ReadSection<FilterRule[]>, ReadSection<FilterRule[]>];
  return {
    values: { filterRules: [...inbound.values, ...outbound.values] },
    ignored: inbound.ignored + outbound.ignored,
    leftOut: inbound.leftOut + outbound.leftOut,
  };
}

/** Null for a rule of which anything is not understood: it might drop more than was meant. */
function parseRule(entry: unknown, direction: AttackDirection): FilterRule | null {
  const { target, class: name, match, ...times } = (entry ?? {}) as Record<string, unknown>;
  const address = typeof target === 'string' ? canonicalAddress(target) : null;
  const known = parseMatch(match);
  const [beganAtMs, endsAtMs] = [timeOf(times.began_at), timeOf(times.ends_at)];
  const dropsAtMs = times.drops_at === null ? null : timeOf(times.drops_at);
  if (address === null || typeof name !== 'string' || !known) return null;
  if (Number.isNaN(beganAtMs) || Number.isNaN(endsAtMs) || Number.isNaN(dropsAtMs)) return null;
  return {
    target: address,
    direction,
    class: attackClassOf(name),
    match: known,
    beganAtMs,
    dropsAtMs,
    endsAtMs,
  };
}

const timeOf = (text: unknown) => (typeof text === 'string' ? Date.parse(text) : Number.NaN);

function parseMatch(value: unknown): PacketMatch | null {
  const {
    protocols,
    source_ports,
    flags_set,
    flags_clear,
    only_fragments,
    length_min,
    length_max,
    ...others
  } = (value ?? {}) as Record<string, unknown>;
  const isWhole = (one: unknown, max: number): one is number =>
    Number.isInteger(one) && (one as number) >= 0 && (one as number) <= max;
  const isList = (list: unknown, max: number): list is number[] =>
    Array.isArray(list) && list.length <= vectorPortsMax && list.every((one) => isWhole(one, max));
  if (Object.keys(others).length > 0 || typeof only_fragments !== 'boolean') return null;
  if (!isList(protocols, 255) || !isList(source_ports, 65_535)) return null;
  if (!isWhole(flags_set, 255) || !isWhole(flags_clear, 255)) return null;
  if (!isWhole(length_min, packetBytesMax) || !isWhole(length_max, packetBytesMax)) return null;
  return { protocols, source_ports, flags_set, flags_clear, only_fragments, length_min, length_max };
}

export interface LiveSection {
  /** The monitor takes live windows (NET-9.1). */
  takesLive: boolean;
}

export function readLive(fields: PlanFields): ReadSection<LiveSection> {
  return versionsOnly({ takesLive: isAdvertised(fields.live_version) });
}

// Which MACs may send from which address.

/** As many as protected addresses (NET-8). */
const ownersMax = 4096;
const macsMax = 8;
const macShape = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

export interface OwnersSection {
  /** None for a monitor that takes no spoofed traffic: then nothing is taken for it. */
  owners: PlanOwners[];
  /** The monitor takes what is spoofed beside source addresses of other servers. */
  takesClaims: boolean;
}

export function readOwners(fields: PlanFields): ReadSection<OwnersSection> {
  const offered = isAdvertised(fields.owners_version) ? fields.owners : [];
  const read = readList(offered, ownersMax, parseOwners);
  const takesClaims = isAdvertised(fields.owners_version) && fields.owners_version !== 1;
  return { ...read, values: { owners: read.values, takesClaims } };
}

/** Null unless every MAC is understood: the one that is not might be the sender. */
function parseOwners(entry: unknown): PlanOwners | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const { address: text, macs } = entry as Record<string, unknown>;
  const address = typeof text === 'string' ? canonicalAddress(text) : null;
  if (address === null || !Array.isArray(macs) || macs.length === 0 || macs.length > macsMax) return null;
  return macs.every((mac) => typeof mac === 'string' && macShape.test(mac)) ? { address, macs } : null;
}

// What to measure from this host.

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

// Addresses that have a place in the tables under any traffic.

/** NET-8. */
const protectedAddressesMax = 4096;

export interface ProtectionSection {
  /** Exact addresses of live allocations. */
  protectedAddresses: string[];
}

export function readProtection(fields: PlanFields): ReadSection<ProtectionSection> {
  const read = readList(fields.protected_targets, protectedAddressesMax, (entry) =>
    typeof entry === 'string' ? canonicalAddress(entry) : null,
  );
  return { ...read, values: { protectedAddresses: read.values } };
}

// Settings of the sensor's site.

/** NET-8: local CIDRs of a site. */
const localPrefixesMax = 128;

export interface SiteSettings {
  /** Canonical text. They decide which endpoint is local, nothing else (NET-2.2.8). */
  localPrefixes: string[];
}

export function readSite(fields: PlanFields): ReadSection<SiteSettings> {
  const read = readList(fields.local_cidrs, localPrefixesMax, (entry) => {
    const prefix = typeof entry === 'string' ? parsePrefix(entry) : null;
    return prefix && formatPrefix(prefix);
  });
  return { ...read, values: { localPrefixes: read.values } };
}
