import type { Queryable } from '#service-kit/postgres/index.ts';
import type * as store from './store.ts';

/** What an order is for. Each step runs in a transaction of the order. */
export interface OrderWork {
  /**
   * Holds everything that carrying out the order needs, so that nothing can refuse it once it is paid. What it returns
   * is stored with the order. Its refusals are `CodedError`s.
   */
  hold(tx: Queryable, order: store.StoredOrder): Promise<store.Held>;
  /** Makes the server's row and its provisioning job out of what is held; returns the server's id. */
  queue(tx: Queryable, order: store.HeldOrder): Promise<number>;
  /** Frees what an order holds that will not be carried out. */
  release(tx: Queryable, held: store.Held): Promise<void>;
}
