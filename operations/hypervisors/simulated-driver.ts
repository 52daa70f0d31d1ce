/**
 * A hypervisor without machines: it takes the steps and the time of a real one and keeps its guests' definitions.
 *
 * Guests whose traffic is replayed from a recording are handed out first, so that a deployed server has traffic.
 */

import { type Duplex, PassThrough } from 'node:stream';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { capabilities } from '#contracts/capabilities.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import {
  type GuestDefinition,
  type HypervisorDriver,
  type HypervisorSite,
  type PreparedGuest,
  type PrivateInterface,
  refuseCapability,
} from './guest.ts';
import {
  beginRebuild,
  beginRestore,
  defineGuest,
  deleteGuest,
  deleteInterface,
  deleteOtherInterfaces,
  deleteSnapshot,
  findGuestIso,
  findGuestPower,
  findRebuild,
  hasSnapshot,
  insertSnapshot,
  inspectGuests,
  isGuestRescued,
  listGuests,
  putInterface,
  setGuestAddresses,
  setGuestFirewall,
  setGuestIso,
  setGuestPassword,
  setGuestPower,
  setGuestRescue,
  setGuestSize,
  setGuestSpeed,
} from './store.ts';

export interface SimulatedDriverOptions {
  db: () => Queryable;
  clock: Clock;
  preparedGuests: readonly PreparedGuest[];
  /** Duration of one step of provisioning or of a power change. */
  stepMs?: number;
}

/** Progress at the end of: disk image copied, guest defined, booted, first contact. */
const provisioningSteps = [25, 45, 80, 95];

/** Where every simulated node is: documentation addresses. */
const simulatedSite: HypervisorSite = {
  node: 'simulated-1',
  bridge: 'br0',
  networks: [
    {
      prefix: '203.0.113.0/24',
      gateway: '203.0.113.1',
      firstGuest: '203.0.113.10',
      lastGuest: '203.0.113.250',
    },
    {
      prefix: '2001:db8:113::/64',
      gateway: '2001:db8:113::1',
      firstGuest: '2001:db8:113::10',
      lastGuest: '2001:db8:113::ffff',
    },
  ],
};

export function createSimulatedDriver(options: SimulatedDriverOptions): HypervisorDriver {
  const stepMs = options.stepMs ?? 250;
  const pause = () => options.clock.wait(stepMs);
  const power = async (name: string, to: 'on' | 'off') =>
    found(name, await setGuestPower(options.db(), name, to));
  const boot = async (step: (progress: number) => Promise<void>) => {
    for (const progress of provisioningSteps) {
      await pause();
      await step(progress);
    }
  };
  return {
    driver: 'simulated',
    reach: 'site',
    capabilities,
    // Nothing is sent, so nothing is dropped.
    guard: 'counted',
    async applyGuard(guest) {
      found(guest, (await findGuestPower(options.db(), guest)) !== null);
    },
    implicitRules: [],
    async applyFirewall(guest, plan) {
      await pause();
      found(guest, await setGuestFirewall(options.db(), guest, plan));
    },
    preparedGuests: options.preparedGuests,
    fetchImage: refuseCapability,
    checkNode: async () => [{ subject: 'connection', state: 'good', text: 'It is simulated.' }],
    describeSite: async () => simulatedSite,
    async ensureGuest(guest, step) {
      await boot(step);
      const { source } = guest;
      const isNew = (await findGuestPower(options.db(), guest.name)) === null;
      if (source && isNew && !(await hasSnapshot(options.db(), source.guest, source.snapshot)))
        throw new CodedError('hypervisor.refused', `The guest ${source.guest} has no such snapshot.`);
      await define(options.db(), guest);
      for (const nic of guest.privateInterfaces) await plug(options.db(), guest.name, nic);
      await power(guest.name, 'on');
      return 'ready';
    },
    async rebuildGuest(guest, rebuild, step) {
      await boot(step);
      const present = await beginRebuild(options.db(), guest, rebuild);
      found(guest.name, present !== null);
      if (present !== rebuild)
        throw new CodedError('hypervisor.refused', `The guest ${guest.name} was rebuilt since.`);
      await power(guest.name, 'on');
      return 'ready';
    },
    async resizeGuest(name, size) {
      await pause();
      const refusal = await setGuestSize(options.db(), name, size);
      if (refusal !== null) throw new CodedError('hypervisor.refused', `The guest ${name} ${refusal}.`);
    },
    async createSnapshot(name, snapshot) {
      await pause();
      const bytes = await insertSnapshot(options.db(), name, snapshot);
      found(name, bytes !== null);
      return { bytes: bytes! };
    },
    async restoreSnapshot(name, snapshot, rebuild) {
      await pause();
      if ((await beginRestore(options.db(), name, snapshot, rebuild)) !== rebuild)
        throw new CodedError(
          'hypervisor.refused',
          `The guest ${name} has no such snapshot, or was rebuilt since.`,
        );
    },
    async deleteSnapshot(name, snapshot) {
      await pause();
      await deleteSnapshot(options.db(), name, snapshot);
      return true;
    },
    async setRootPassword({ name, rootPassword }) {
      await pause();
      if (!(await setGuestPassword(options.db(), name, rootPassword)))
        throw new CodedError('hypervisor.refused', `The guest ${name} does not run.`);
      return 'now';
    },
    async forgetRootPassword() {},
    async setAddresses({ name, addresses }) {
      await pause();
      const list = addresses.map(({ address }) => address);
      found(name, await setGuestAddresses(options.db(), name, list));
    },
    consoleKinds: ['text'],
    async openConsole(name) {
      if ((await findGuestPower(options.db(), name)) !== 'on')
        throw new CodedError('hypervisor.refused', `The guest ${name} does not run.`);
      return simulatedConsole(name);
    },
    async setPower(name, to) {
      await pause();
      await power(name, to);
    },
    async signalShutdown(name) {
      await pause();
      await power(name, 'off');
    },
    async restart(name) {
      await pause();
      await power(name, 'on');
    },
    readPower: (name) => findGuestPower(options.db(), name),
    readRebuild: (name) => findRebuild(options.db(), name),
    async observeGuests() {
      const guests = await listGuests(options.db());
      return guests.map((guest) => ({ ...guest, interfaces: [], guards: [] }));
    },
    inspectGuests: () => inspectGuests(options.db()),
    async ensureGone(name) {
      await pause();
      await deleteGuest(options.db(), name);
    },
    ...rescuesOf(options.db, boot),
    ...interfacesOf(options.db, pause),
  };
}

function found(name: string, isThere: boolean): void {
  if (!isThere) throw new CodedError('hypervisor.refused', `The hypervisor has no guest ${name}.`);
}

/** A terminal that asks for a name to sign in, and shows what is typed. */
function simulatedConsole(name: string): Duplex {
  const terminal = new PassThrough();
  terminal.write(`\r\n${name} login: `);
  return terminal;
}

function rescuesOf(
  db: () => Queryable,
  boot: (step: (progress: number) => Promise<void>) => Promise<void>,
): Pick<HypervisorDriver, 'rescueGuest' | 'endRescue' | 'readRescue' | 'changeIso' | 'readIso'> {
  const refuseUnless = (isCurrent: boolean, name: string) => {
    if (!isCurrent)
      throw new CodedError('hypervisor.refused', `There is no guest ${name}, or it was changed since.`);
  };
  return {
    async rescueGuest(guest, to, step) {
      await boot(step);
      refuseUnless((await setGuestRescue(db(), guest.name, to, guest)) === to, guest.name);
      await setGuestPower(db(), guest.name, 'on');
      return 'ready';
    },
    async endRescue(name, to) {
      refuseUnless((await setGuestRescue(db(), name, to, null)) === to, name);
    },
    async changeIso(name, iso, to) {
      refuseUnless((await setGuestIso(db(), name, to, iso)) === to, name);
      return 'now';
    },
    readIso: (name) => findGuestIso(db(), name),
    readRescue: (name) => isGuestRescued(db(), name),
  };
}

function interfacesOf(
  db: () => Queryable,
  pause: () => Promise<void>,
): Pick<
  HypervisorDriver,
  'limitSpeed' | 'attachInterface' | 'detachInterface' | 'syncNetwork' | 'removeNetwork'
> {
  return {
    async limitSpeed(name, mbit) {
      await pause();
      found(name, await setGuestSpeed(db(), name, mbit));
    },
    async attachInterface(guest, nic) {
      await pause();
      await plug(db(), guest, nic);
      return { requiresReboot: false };
    },
    async detachInterface(guest, nic) {
      await pause();
      await deleteInterface(db(), guest, nic);
    },
    async syncNetwork(networkId, members) {
      await pause();
      await deleteOtherInterfaces(
        db(),
        networkId,
        members.map((member) => member.interface.mac),
      );
      for (const member of members) await plug(db(), member.guest, member.interface);
    },
    async removeNetwork(networkId) {
      await pause();
      await deleteOtherInterfaces(db(), networkId, []);
    },
  };
}

async function plug(db: Queryable, guest: string, nic: PrivateInterface): Promise<void> {
  if (await putInterface(db, guest, nic)) return;
  throw new CodedError('hypervisor.refused', `The hypervisor has no guest ${guest} for ${nic.mac}.`);
}

async function define(db: Queryable, guest: GuestDefinition): Promise<void> {
  const addresses = guest.addresses.map((given) => given.address);
  let found: Awaited<ReturnType<typeof defineGuest>>;
  try {
    found = await defineGuest(db, guest, addresses);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new CodedError('hypervisor.refused', `Another guest has the MAC address ${guest.mac}.`, {}, error);
  }
  const isSame =
    found.macAddress === guest.mac && found.addresses.toSorted().join() === addresses.toSorted().join();
  if (!isSame) {
    throw new CodedError(
      'hypervisor.refused',
      `A guest ${guest.name} stands with another MAC or other addresses.`,
    );
  }
}
