import { isAdvertised, type PlanFields, type ReadSection, versionsOnly } from './section.ts';

export interface LiveSection {
  /** The monitor takes live windows (NET-9.1). */
  takesLive: boolean;
}

export function readLive(fields: PlanFields): ReadSection<LiveSection> {
  return versionsOnly({ takesLive: isAdvertised(fields.live_version) });
}
