/** Retention of the whole monitor. A feature that declares lines is added here. */
import { keptAlerts } from './alerts/index.ts';
import { keptDetection } from './detection/index.ts';
import { keptDevices } from './devices/index.ts';
import { keptEvents } from './events/index.ts';
import type { Evidence } from './evidence/index.ts';
import { keptFacts } from './facts/index.ts';
import { cursorsKeptMs, type Feeds, keptFeeds } from './feeds/index.ts';
import { keptHandOff } from './hand-off/index.ts';
import type { Inbox } from './inbox/index.ts';
import { keptIncidents } from './incidents/index.ts';
import { keptTombstones, keptVmChanges } from './inventory/index.ts';
import type { Live } from './live/index.ts';
import { keptPlacements } from './placements/index.ts';
import { keptProbes } from './probes/index.ts';
import { keptProtection } from './protection/index.ts';
import type { KeptTable, Sweep } from './retention/index.ts';
import { keptScans } from './scans/index.ts';
import { keptNames } from './search/index.ts';
import { keptSetAsides } from './set-asides/index.ts';
import { keptSpoofing } from './spoofing/index.ts';
import { keptVulnerabilities } from './vulnerabilities/index.ts';

/** Retention times of all tables. */
export const keptTables = [
  ...keptFacts,
  ...keptProbes,
  ...keptDetection,
  ...keptFeeds,
  ...keptProtection,
  ...keptAlerts,
  ...keptSetAsides,
  ...keptSpoofing,
  ...keptDevices,
  ...keptPlacements,
  ...keptNames,
  ...keptTombstones,
  ...keptVmChanges,
  ...keptHandOff,
  ...keptIncidents,
  ...keptEvents,
  ...keptScans,
  ...keptVulnerabilities,
];

/** The same; capture files of incidents are removed before the incidents, and while they can't be, both stay. */
export const keptWithObjects = (evidence: Pick<Evidence, 'removeOfIncidents'>): KeptTable[] =>
  keptTables.map((kept: KeptTable) =>
    keptIncidents.includes(kept) ? { ...kept, beforeRemoval: evidence.removeOfIncidents } : kept,
  );

/** Data that features delete by rules of their own. A store of objects may not answer, so it is the last. */
export const sweepsOf = (of: { feeds: Feeds; inbox: Inbox; live: Live; evidence: Evidence }): Sweep[] => [
  { name: 'feed_cursors', run: (nowMs) => of.feeds.forgetCursors(nowMs - cursorsKeptMs) },
  { name: 'inbox_uploads', run: () => of.inbox.prune() },
  { name: 'live_windows', run: () => of.live.prune() },
  { name: 'evidence_files', run: () => of.evidence.removeExpired() },
];
