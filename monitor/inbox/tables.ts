/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['inbox_attempts', 'inbox_holds', 'inbox_spools', 'inbox_uploads'] as const;
