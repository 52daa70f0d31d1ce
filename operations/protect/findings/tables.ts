/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'finding_counts',
  'finding_ignores',
  'finding_mails',
  'finding_notices',
  'finding_projections',
  'finding_services',
  'findings',
  'known_findings',
] as const;
