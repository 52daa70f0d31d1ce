/**
 * Events about customers' resources, for webhook subscriptions.
 *
 * A feature calls `emit` in the transaction that makes the change, so that there is no event without its change and no
 * change without its event. Whose event it is follows from the thing itself. What becomes of events is not decided here:
 * `operations/webhooks` takes them out. This feature imports no other, so any feature may emit.
 */

import type { NewEvent } from '#operations/views/event-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export {
  deleteOlderThan as deleteEventsOlderThan,
  insertOwnEvent as recordTestEvent,
  takeUndispatched,
} from './store.ts';

/** Records an event. `tx` must be the transaction of the change. */
export function emit(tx: Queryable, event: NewEvent): Promise<void> {
  return store.insertEvent(tx, event);
}

/** What can happen to a customer's things, as the features tell it. */

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
