/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['protect_minutes', 'protect_series', 'protect_set_aside'] as const;
