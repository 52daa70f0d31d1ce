/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['probe_hours', 'probe_minutes', 'probe_results', 'probes'] as const;
