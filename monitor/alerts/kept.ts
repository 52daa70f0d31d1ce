/** How long alerts are kept: what is open stays. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptAlerts: readonly KeptTable[] = [
  { table: 'alert_episodes', column: 'resolved_at', keptFor: '3 months', isPartitioned: false },
  {
    table: 'alert_notifications',
    column: 'created_at',
    keptFor: '3 months',
    isPartitioned: false,
    only: 'episode_id is null',
  },
];
