/** What can happen to a customer's things, as the features tell it. */
export type { NewEvent } from '#operations/views/index.ts';

/** An event as it stands in the outbox. */
export interface StoredEvent {
  id: number;
  publicId: string;
  type: string;
  organizationId: number;
  tenantId: number | null;
  data: Record<string, unknown>;
  occurredAt: Date;
}
