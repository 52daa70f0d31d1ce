/**
 * Who runs a background loop now: a renewable database lease with a term, all times by the database's clock.
 *
 * Every effect of the loop must be fenced: its statement asks for `heldTerm`, or it runs in `underLease` or `ifHeld`, so
 * that a holder that slept past its time changes nothing.
 */

export {
  ifHeld,
  isTrusted,
  type Lease,
  LeaseLost,
  renewLease,
  resignLease,
  takeLease,
  underLease,
} from './hold-lease.ts';
export { createExpiryLoop, createLeasedLoop, type LeasedLoop } from './leased-loop.ts';
export { cutPastHolder, heldTerm, holdsTerm, type LeaseState, listLeases, nameTerm } from './store.ts';
