/** Settings of the sensor's site. */
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { type PlanFields, type ReadSection, readList } from './section.ts';

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
