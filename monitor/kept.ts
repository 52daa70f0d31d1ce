/** What else happens when data is no longer kept. */
import type { Evidence } from './evidence/index.ts';
import { cursorsKeptMs, type Feeds } from './feeds/index.ts';
import type { Inbox } from './inbox/index.ts';
import type { Live } from './live/index.ts';
import { type KeptTable, keptTables, type Sweep } from './retention/index.ts';

const withFiles = ['incidents', 'incident_observations', 'site_correlations'];

/** Capture files of incidents are removed before the incidents, and while they can't be, both stay. */
export const keptWithObjects = (evidence: Pick<Evidence, 'removeOfIncidents'>): KeptTable[] =>
  keptTables.map((kept) =>
    withFiles.includes(kept.table) ? { ...kept, beforeRemoval: evidence.removeOfIncidents } : kept,
  );

/** Data that features delete by rules of their own. A store of objects may not answer, so it is the last. */
export const sweepsOf = (of: { feeds: Feeds; inbox: Inbox; live: Live; evidence: Evidence }): Sweep[] => [
  { name: 'feed_cursors', run: (nowMs) => of.feeds.forgetCursors(nowMs - cursorsKeptMs) },
  { name: 'inbox_uploads', run: () => of.inbox.prune() },
  { name: 'live_windows', run: () => of.live.prune() },
  { name: 'evidence_files', run: () => of.evidence.removeExpired() },
];
