/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['bandwidth_days', 'bandwidth_own_scans', 'bandwidth_readings'] as const;
