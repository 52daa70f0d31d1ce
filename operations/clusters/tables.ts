/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['clusters', 'node_reservations', 'nodes'] as const;
