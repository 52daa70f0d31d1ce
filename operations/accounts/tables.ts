/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'billing_profiles',
  'invitations',
  'memberships',
  'organizations',
  'people',
  'tenants',
] as const;
