/** An API key: what it is made of, and what it reaches. */
export type { ReachableTenant } from '#operations/views/index.ts';

export interface IssueKeyInput {
  organizationId: number;
  /** For whom the key acts. */
  personId: number;
  name: string;
  scope: 'read' | 'full';
  /** null: all tenants of the organization, also later ones. */
  tenantIds: readonly number[] | null;
  expiresAt?: Date | null;
}
