export type TenantStatus = 'ACTIVE' | 'SUSPENDED' | 'CLOSED';
