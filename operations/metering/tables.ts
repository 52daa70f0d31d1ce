/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['usage_days', 'usage_key_months', 'usage_months', 'usage_terms'] as const;
