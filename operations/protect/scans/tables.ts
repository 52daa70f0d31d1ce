/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'port_mails',
  'port_observations',
  'port_scan_series',
  'port_scans',
  'scan_connections',
  'scan_requests',
] as const;
