/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['address_holds', 'address_pools', 'allocations'] as const;
