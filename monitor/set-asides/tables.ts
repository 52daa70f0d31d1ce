/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['sensor_set_asides', 'set_aside_hosts'] as const;
