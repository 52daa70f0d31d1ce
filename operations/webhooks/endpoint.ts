/** What an endpoint and its deliveries are. */
import { webhookEvents } from '#contracts/customer-api/index.ts';
import { invalidWebhook } from '#service-kit/webhooks/index.ts';

export type { Delivery } from '#operations/views/index.ts';

export interface Endpoint {
  id: number;
  organizationId: number;
  /** null: every workspace, and the organization itself. */
  tenantId: number | null;
  url: string;
  description: string;
  eventTypes: string[];
  createdAt: Date;
  disabledAt: Date | null;
  disabledReason: 'gone' | 'owner' | null;
  consecutiveFailures: number;
  failingSince: Date | null;
  /** Until when deliveries carry the former secret's signature too. */
  previousSecretUntil: Date | null;
}

/** The chosen events, each once, in their usual order; throws `webhooks.invalid` when there is none or an unknown one. */
export function parseEventTypes(chosen: readonly string[]): string[] {
  const known: readonly string[] = webhookEvents.map((event) => event.type);
  const unknown = chosen.find((type) => !known.includes(type));
  if (unknown !== undefined) throw invalidWebhook(`There is no event ${unknown}.`);
  const types = known.filter((type) => chosen.includes(type));
  if (types.length === 0) throw invalidWebhook('Choose at least one event.');
  return types;
}
