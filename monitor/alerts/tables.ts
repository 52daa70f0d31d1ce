/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'alert_channels',
  'alert_episodes',
  'alert_mutes',
  'alert_notifications',
  'alert_watch',
] as const;
