/**
 * The machines that run guests, behind one interface. Each cluster names its driver, each of its nodes how it is
 * reached, so simulated, lab and libvirt guests can live side by side.
 *
 * Every call is idempotent by the guest's name, because the job that makes it may be killed and run again: a repeated
 * `ensureGuest` finds its own guest, a repeated `ensureGone` finds nothing, and neither makes a second one.
 */

import { readFile } from 'node:fs/promises';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { type Capability, capabilities } from '#contracts/capabilities.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { DriverName, HypervisorDriver, HypervisorNode, PreparedGuest } from './guest.ts';
import { createLabDriver, labCapabilities } from './lab-driver.ts';
import { createLibvirtDriver } from './libvirt/driver.ts';
import { createSimulatedDriver } from './simulated-driver.ts';

export {
  bridgeOf,
  driverNames,
  type FoundGuest,
  type GuestDefinition,
  guestName,
  type HypervisorDriver,
  type HypervisorNetwork,
  type HypervisorNode,
  type ImplicitRule,
  type InterfaceGuard,
  imageFile,
  isPermanentRefusal,
  type NodeCheck,
  type ObservedGuest,
  type PrivateInterface,
  parseNetworkBridges,
  type SnapshotProgress,
  serverIdOfGuest,
} from './guest.ts';
export { createLabDriver } from './lab-driver.ts';
export { createSimulatedDriver } from './simulated-driver.ts';

export interface Hypervisors {
  /** The driver that speaks to this node; throws `hypervisor.refused` for one whose settings don't serve. */
  of(node: HypervisorNode): HypervisorDriver;
  /** What nodes of this driver can do. */
  capabilitiesOf(driver: string): readonly Capability[];
  /** Guests that are waiting on the wire, for clusters of this driver. */
  preparedGuestsOf(driver: string): readonly PreparedGuest[];
}

/** Reads what the drivers need of files; throws one clear sentence when that does not serve. */
export async function createHypervisors(options: {
  /** Control socket of the lab; needed by nodes of the driver `lab`. */
  labSocket: string | null;
  /** File of guests that the driver `simulated` hands out first. */
  simulatedGuestsFile: string | null;
  db: () => Queryable;
  clock: Clock;
}): Promise<Hypervisors> {
  const file = options.simulatedGuestsFile;
  const preparedGuests: PreparedGuest[] = file === null ? [] : await readPreparedGuests(file);
  const simulated = createSimulatedDriver({ db: options.db, clock: options.clock, preparedGuests });
  const lab = options.labSocket === null ? null : createLabDriver({ socketPath: options.labSocket });
  return {
    of(node) {
      switch (node.driver) {
        case 'simulated':
          return {
            ...simulated,
            describeSite: async () => ({ ...(await simulated.describeSite()), node: node.name }),
          };
        case 'lab':
          if (lab !== null) return lab;
          throw refused(
            'A node of the driver lab needs SVC_OPERATIONS_LAB_SOCKET: the control_socket that `./svc lab up` writes into world.json.',
          );
        case 'libvirt':
          return createLibvirtDriver(node);
        default:
          throw refused(`There is no driver ${node.driver}.`);
      }
    },
    capabilitiesOf: (driver) => capabilitiesOfDriver[driver as DriverName] ?? [],
    preparedGuestsOf: (driver) => (driver === 'simulated' ? preparedGuests : []),
  };
}

const capabilitiesOfDriver: Record<DriverName, readonly Capability[]> = {
  simulated: capabilities,
  lab: labCapabilities,
  libvirt: capabilities,
};

/**
 * Nodes by the driver that speaks for them; those of one driver are one site, whose guests it shows for each of them. A node whose
 * settings don't serve is left out, so that the others are looked at: its page says why (`observePower`).
 */
export function groupByDriver<Node extends HypervisorNode>(
  hypervisors: Hypervisors,
  nodes: readonly Node[],
): Map<HypervisorDriver, Node[]> {
  const groups = new Map<HypervisorDriver, Node[]>();
  for (const node of nodes) {
    try {
      const driver = hypervisors.of(node);
      groups.set(driver, [...(groups.get(driver) ?? []), node]);
    } catch (error) {
      if (!hasCode(error, 'hypervisor.refused')) throw error;
    }
  }
  return groups;
}

/** One driver for every node, ignoring the node's own driver; for tests. */
export function singleDriver(driver: HypervisorDriver): Hypervisors {
  return {
    of: () => driver,
    capabilitiesOf: () => driver.capabilities,
    preparedGuestsOf: (name) => (name === driver.driver ? driver.preparedGuests : []),
  };
}

function refused(message: string): CodedError {
  return new CodedError('hypervisor.refused', message);
}

const PreparedGuests = Type.Array(
  Type.Object({
    name: Type.String({ minLength: 1 }),
    mac: Type.String({ pattern: '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' }),
    addresses: Type.Array(Type.String(), { minItems: 1 }),
  }),
);

/** Reads `SVC_OPERATIONS_SIMULATED_GUESTS`: a JSON array of {name, mac, addresses}. Addresses come out canonical. */
export async function readPreparedGuests(file: string): Promise<PreparedGuest[]> {
  const refuse = (what: string, cause?: unknown) =>
    new CodedError(
      'hypervisor.guests_file',
      `SVC_OPERATIONS_SIMULATED_GUESTS (${file}): ${what}.`,
      {},
      cause,
    );
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw refuse(`can't be read as JSON (${describeError(error)})`, error);
  }
  if (!Value.Check(PreparedGuests, content)) {
    throw refuse('must be a JSON array of {"name", "mac": "52:54:00:…" in lower case, "addresses": […]}');
  }
  return content.map((guest) => ({
    name: guest.name,
    mac: guest.mac,
    addresses: guest.addresses.map((text) => {
      const address = canonicalAddress(text);
      if (address === null) throw refuse(`"${text}" is not an IP address`);
      return address;
    }),
  }));
}
