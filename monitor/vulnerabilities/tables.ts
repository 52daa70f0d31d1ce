/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'vulnerability_advisories',
  'vulnerability_findings',
  'vulnerability_ignores',
  'vulnerability_noted',
  'vulnerability_package_fixes',
  'vulnerability_products',
  'vulnerability_projections',
  'vulnerability_servers',
  'vulnerability_services',
  'vulnerability_severe',
  'vulnerability_software',
  'vulnerability_source',
  'vulnerability_trackers',
  'vulnerability_uses',
  'vulnerability_uses_state',
] as const;
