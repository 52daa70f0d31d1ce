/** How long verdicts of minutes are kept: as long as the sweep sends their minutes again. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptFeeds: readonly KeptTable[] = [
  { table: 'minute_verdicts', column: 'minute', keptFor: '24 hours', isPartitioned: true },
];
