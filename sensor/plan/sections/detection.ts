/** What the detector protects beside the targets, by which thresholds, and which drills run. */
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { attackClasses } from '#contracts/attack-classes.ts';
import { attackDirections } from '#contracts/incidents.ts';
import {
  additionalCidrsMax,
  drillsMax,
  metrics,
  thresholdGroupsMax,
  thresholdMax,
  thresholdMin,
} from '#contracts/sensor-api/detection.ts';
import { type Drill, type ThresholdGroup, type Thresholds, withDefaults } from '#sensor/detector/index.ts';
import { isAdvertised, type PlanFields, type ReadSection, readList } from './section.ts';

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
