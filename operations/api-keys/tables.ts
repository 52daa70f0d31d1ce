/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['api_key_tenants', 'api_keys'] as const;
