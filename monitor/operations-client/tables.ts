/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['notice_secret', 'operations_connection'] as const;
