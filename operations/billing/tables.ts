/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['credit_balances', 'ledger_entries'] as const;
