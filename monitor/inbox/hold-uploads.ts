/**
 * Holding uploads back: what arrives after the hold is stored and receipted and waits, what arrived before is applied. A hold that its
 * process no longer renews ends by itself. Urgent uploads hold no facts and are applied all the same.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface InboxHold {
  /** Begins a hold under this id, in the place of any other. */
  begin(id: string): Promise<void>;
  /** False when it has run out or another took its place. */
  renew(id: string): Promise<boolean>;
  /** Uploads that arrived before it and wait. */
  countBefore(id: string): Promise<number>;
  /** True, until the end of the transaction, if it lasts and nothing that arrived before it waits. */
  isSettled(trx: Queryable, id: string): Promise<boolean>;
  end(id: string): Promise<void>;
}

const holdSeconds = 60;

export function createInboxHold(db: () => Queryable): InboxHold {
  return {
    async begin(id) {
      // First everything is held. A worker that has not seen it claims uploads that are stored by now, so it is the number after that
      // which divides what may have been begun from what has not.
      await store.beginHold(db(), id, holdSeconds);
      await store.openHold(db(), id);
    },
    renew: (id) => store.renewHold(db(), id, holdSeconds),
    countBefore: (id) => store.countBefore(db(), id),
    isSettled: async (trx, id) => (await store.lockHold(trx, id)) && (await store.countBefore(trx, id)) === 0,
    end: (id) => store.endHold(db(), id),
  };
}
