/** An invitation to join an organization. */
export interface Invitation {
  id: number;
  organizationId: number;
  organizationName: string;
  email: string;
  expiresAt: Date;
}
