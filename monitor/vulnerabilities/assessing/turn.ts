import type { Lease } from '#service-kit/leases/index.ts';

/** One run of the loop, and its lease. */
export interface Turn {
  lease: Lease;
  /** Throws `LeaseLost`. */
  renew(): Promise<void>;
  signal: AbortSignal;
}
