/** What can happen to a customer's things, as the features tell it. */
import type { WebhookEventType } from '#contracts/customer-api/index.ts';

/** Whose event it is follows from the thing that it is about, never from what a caller says. */
export type NewEvent =
  | {
      type: Extract<WebhookEventType, `server.${string}`>;
      serverId: number;
    }
  | { type: Extract<WebhookEventType, 'action.finished'>; serverId: number; actionId: number }
  | {
      type: Extract<WebhookEventType, `network.${string}`>;
      networkId: number;
      tenantId: number;
    }
  | {
      type: Extract<WebhookEventType, 'usage.threshold'>;
      tenantId: number;
      /** `2025-11`. */
      period: string;
      percent: 50 | 80 | 100;
    }
  | { type: Extract<WebhookEventType, `key.${string}`>; keyId: string }
  | {
      type: Extract<WebhookEventType, 'account.locked'>;
      tenantId: number;
      reason: 'account_suspended' | 'account_closed';
    };

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
