/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['attention_alerts'] as const;
