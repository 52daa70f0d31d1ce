/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'enrolment_tokens',
  'host_inventories',
  'sensor_conditions',
  'sensor_contacts',
  'sensor_credentials',
  'sensor_refusals',
  'sensors',
] as const;
