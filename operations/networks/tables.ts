/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['network_attachments', 'network_holds', 'private_networks'] as const;
