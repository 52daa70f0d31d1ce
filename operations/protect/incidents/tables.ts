/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['attack_mails', 'protect_incident_refusals', 'protect_incidents'] as const;
