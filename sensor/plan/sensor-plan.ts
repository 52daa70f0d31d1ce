/**
 * A plan as this sensor understands it. Each section is read by a reader of its own (`sections/`): what a newer monitor adds
 * is ignored, and entries that find no use are counted.
 */
import { type CaptureSection, readCapture } from './sections/capture.ts';
import { type DetectionSection, readDetection } from './sections/detection.ts';
import { type FilterSection, readFilter } from './sections/filter.ts';
import { type LiveSection, readLive } from './sections/live.ts';
import { type OwnersSection, readOwners } from './sections/owners.ts';
import { type ProbesSection, readProbes } from './sections/probes.ts';
import { type ProtectionSection, readProtection } from './sections/protection.ts';
import type { PlanFields } from './sections/section.ts';
import { readSite, type SiteSettings } from './sections/site.ts';

/** Entries of a section that the sensor does not use. */
export interface Omission {
  section: string;
  /** Not understood: no address, or a probe of a kind that this sensor does not know. */
  ignored: number;
  /** Above this sensor's bound. */
  leftOut: number;
}

export interface SensorPlan
  extends SiteSettings,
    CaptureSection,
    LiveSection,
    ProtectionSection,
    OwnersSection,
    ProbesSection,
    DetectionSection,
    FilterSection {
  /** Of the sections that have any. */
  omissions: Omission[];
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
  const fields = body as PlanFields;
  if (fields.plan_version !== 1) return null;
  const site = readSite(fields);
  const capture = readCapture(fields);
  const live = readLive(fields);
  const protection = readProtection(fields);
  const owners = readOwners(fields);
  const probes = readProbes(fields);
  const detection = readDetection(fields);
  const filter = readFilter(fields);
  const omissions = Object.entries({
    ...{ site, capture, live, protection, owners, probes, detection, filter },
  }).flatMap(([section, { ignored, leftOut }]) =>
    ignored + leftOut > 0 ? [{ section, ignored, leftOut }] : [],
  );
  return {
    ...site.values,
    ...capture.values,
    ...live.values,
    ...protection.values,
    ...owners.values,
    ...probes.values,
    ...detection.values,
    ...filter.values,
    omissions,
  };
}
