/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['known_devices', 'sessions', 'sign_in_failures'] as const;
