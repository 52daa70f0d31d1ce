/**
 * Events about customers' resources, for webhook subscriptions.
 *
 * A feature calls `emit` in the transaction that makes the change, so that there is no event without its change and no
 * change without its event. Whose event it is follows from the thing itself. What becomes of events is not decided here:
 * `operations/webhooks` takes them out. This feature imports no other, so any feature may emit.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NewEvent } from './event.ts';
import * as store from './store.ts';

export type { NewEvent, StoredEvent } from './event.ts';
export {
  deleteOlderThan as deleteEventsOlderThan,
  insertOwnEvent as recordTestEvent,
  takeUndispatched,
} from './store.ts';

/** Records an event. `tx` must be the transaction of the change. */
export function emit(tx: Queryable, event: NewEvent): Promise<void> {
  return store.insertEvent(tx, event);
}
