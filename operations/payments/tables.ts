/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['charges', 'gateway_customers', 'saved_cards', 'test_gateway_charges'] as const;
