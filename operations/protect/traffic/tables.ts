/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'protect_application_hours',
  'protect_minutes',
  'protect_series',
  'protect_set_aside',
  'protect_usage_hours',
  'protect_usage_tens',
] as const;
