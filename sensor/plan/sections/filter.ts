/** What the filter at uplinks drops, or counts. */
import { canonicalAddress } from '#common/ip/index.ts';
import { attackClassOf } from '#contracts/attack-classes.ts';
import { vectorPortsMax } from '#contracts/sensor-api/detection.ts';
import { filterRulesMax, type PacketMatch, packetBytesMax } from '#contracts/sensor-api/filter.ts';
import type { FilterRule } from '#sensor/kernel/index.ts';
import { isAdvertised, type PlanFields, type ReadSection, readList } from './section.ts';

export interface FilterSection {
  /** Null for a monitor that takes nothing of it: then nothing is filtered for it. */
  filterRules: FilterRule[] | null;
}

export function readFilter(fields: PlanFields): ReadSection<FilterSection> {
  if (!isAdvertised(fields.filter_version)) return { values: { filterRules: null }, ignored: 0, leftOut: 0 };
  const read = readList(fields.filter_rules, filterRulesMax, parseRule);
  return { ...read, values: { filterRules: read.values } };
}

/** Null for a rule of which anything is not understood: it might drop more than was meant. */
function parseRule(entry: unknown): FilterRule | null {
  const { target, class: name, match, ...times } = (entry ?? {}) as Record<string, unknown>;
  const address = typeof target === 'string' ? canonicalAddress(target) : null;
  const known = parseMatch(match);
  const [beganAtMs, endsAtMs] = [timeOf(times.began_at), timeOf(times.ends_at)];
  const dropsAtMs = times.drops_at === null ? null : timeOf(times.drops_at);
  if (address === null || typeof name !== 'string' || !known) return null;
  if (Number.isNaN(beganAtMs) || Number.isNaN(endsAtMs) || Number.isNaN(dropsAtMs)) return null;
  return { target: address, class: attackClassOf(name), match: known, beganAtMs, dropsAtMs, endsAtMs };
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
