/**
 * The machines that run guests, behind one interface; which driver serves is a setting.
 *
 * Every call is idempotent by the guest's name, because the job that makes it may be killed and run again: a repeated
 * `ensureGuest` finds its own guest, a repeated `ensureGone` finds nothing, and neither makes a second one.
 */
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { HypervisorDriver, PreparedGuest } from './guest.ts';
import { createLabDriver } from './lab-driver.ts';
import { readPreparedGuests } from './read-prepared-guests.ts';
import { createSimulatedDriver } from './simulated-driver.ts';

export {
  type GuestAddress,
  type GuestDefinition,
  guestName,
  type HypervisorDriver,
  type HypervisorNetwork,
  type HypervisorSite,
  isPermanentRefusal,
  type PreparedGuest,
  type PrivateInterface,
} from './guest.ts';
export { createLabDriver } from './lab-driver.ts';
export { readPreparedGuests } from './read-prepared-guests.ts';
export { createSimulatedDriver } from './simulated-driver.ts';

export interface HypervisorOptions {
  driver: 'simulated' | 'lab';
  /** Control socket of the lab; needed by the driver `lab`. */
  labSocket: string | null;
  /** File of guests that the driver `simulated` hands out first. */
  simulatedGuestsFile: string | null;
  db: () => Queryable;
  clock: Clock;
}

/** Makes the driver that the settings name; throws one clear sentence when its settings don't serve. */
export async function createHypervisor(options: HypervisorOptions): Promise<HypervisorDriver> {
  if (options.driver === 'lab') {
    if (options.labSocket === null) {
      throw new CodedError(
        'hypervisor.no_socket',
        'SVC_OPERATIONS_HYPERVISOR=lab needs SVC_OPERATIONS_LAB_SOCKET: the control_socket that `./svc lab up` writes into world.json.',
      );
    }
    return createLabDriver({ socketPath: options.labSocket });
  }
  const file = options.simulatedGuestsFile;
  const preparedGuests: PreparedGuest[] = file === null ? [] : await readPreparedGuests(file);
  return createSimulatedDriver({ db: options.db, clock: options.clock, preparedGuests });
}
