/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['webhook_attempts', 'webhook_deliveries', 'webhook_endpoints'] as const;
