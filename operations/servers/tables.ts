/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['server_actions', 'server_charges', 'server_interfaces', 'servers'] as const;
