/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['detector_addresses', 'detector_epochs', 'detector_minutes'] as const;
