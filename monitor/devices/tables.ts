/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'device_names',
  'devices',
  'foreign_macs',
  'ip_bindings',
  'ip_conflicts',
  'retired_macs',
] as const;
