/** How long drills and replays are kept. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptProtection: readonly KeptTable[] = [
  { table: 'protection_drills', column: 'starts_at', keptFor: '3 months', isPartitioned: false },
  { table: 'protection_replays', column: 'asked_at', keptFor: '3 months', isPartitioned: false },
];
