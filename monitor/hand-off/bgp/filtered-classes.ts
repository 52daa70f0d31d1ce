/** Classes of attacks that can be told from other traffic by a filter. */
export const filteredClasses = [
  'amplification',
  'syn_flood',
  'synack_reflection',
  'ack_flood',
  'rst_flood',
  'connection_flood',
  'udp_flood',
  'icmp_flood',
  'gre_flood',
  'fragment_flood',
] as const;
export type FilteredClass = (typeof filteredClasses)[number];

export const hasFilter = (name: string): name is FilteredClass =>
  (filteredClasses as readonly string[]).includes(name);
