/**
 * Holding uploads back: what arrives after the hold is stored and receipted and waits, what arrived before is applied. A hold that its
 * process no longer renews ends by itself. Urgent uploads hold no facts and are applied all the same.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type InboxHold = ReturnType<typeof createInboxHold>;

const holdSeconds = 60;

export function createInboxHold(db: () => Queryable) {
  return {
    /** Begins a hold under this id, in the place of any other. */
    async begin(id: string) {
      // First everything is held. A worker that has not seen it claims uploads that are stored by now, so it is the number after that
      // which divides what may have been begun from what has not.
      await store.beginHold(db(), id, holdSeconds);
      await store.openHold(db(), id);
    },
    /** False when it has run out or another took its place. */
    renew: (id: string) => store.renewHold(db(), id, holdSeconds),
    /** Uploads that arrived before it and wait. */
    countBefore: (id: string) => store.countBefore(db(), id),
    /** True, until the end of the transaction, if it lasts and nothing that arrived before it waits. */
    isSettled: async (trx: Queryable, id: string) =>
      (await store.lockHold(trx, id)) && (await store.countBefore(trx, id)) === 0,
    end: (id: string) => store.endHold(db(), id),
  };
}
