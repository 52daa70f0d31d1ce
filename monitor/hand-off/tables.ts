/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'bgp_sessions',
  'hand_off_actions',
  'hand_off_incidents',
  'hand_off_rules',
  'hand_off_sites',
] as const;
