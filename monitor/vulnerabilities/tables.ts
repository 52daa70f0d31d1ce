/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['vulnerability_advisories', 'vulnerability_products', 'vulnerability_source'] as const;
