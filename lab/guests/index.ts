/**
 * The guests of one world: defined, powered, restarted, removed; kept on disk.
 *
 * Calls run one after another, whoever makes them. A definition is on disk before its guest is made and until its
 * guest is removed, so a crash in between leaves nothing that the next start would not put right.
 */
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Family } from '../traffic/exchanges.ts';
import type { GuestProcessInput } from '../traffic/guest-process.ts';
import type { TalkCounts } from '../traffic/talk.ts';
import type { CertificateFiles } from '../traffic/web-service.ts';
import { nameGuestLink, type WorldNames } from '../world/name-world.ts';
import { type SupervisedProcess, superviseProcess } from '../world/supervise-process.ts';
import {
  defineGuest,
  type GuestDefinition,
  type GuestInput,
  isSameGuest,
  type Power,
} from './guest-definition.ts';
import { readGuestFile, writeGuestFile } from './guest-file.ts';
import { plugGuest, unplugGuest } from './plug-guest.ts';

export interface Guest extends GuestDefinition {
  /** Its link on the bridge, in the hypervisor's namespace. */
  interface: string;
  namespace: string;
  /** What its client has done since its process started; null while it is off. */
  talk: TalkCounts | null;
}

export interface Guests {
  start(): Promise<void>;
  stop(): Promise<void>;
  list(): Guest[];
  /** Throws `lab.guest_unknown`. */
  get(name: string): Guest;
  /** True when it was made now, false when it stood. Throws `lab.guest_differs`, `lab.address_taken`, `lab.mac_taken`. */
  put(input: GuestInput): Promise<boolean>;
  setPower(name: string, power: Power): Promise<void>;
  restart(name: string): Promise<void>;
  /** Nothing happens when there is no such guest. */
  remove(name: string): Promise<void>;
}

export interface GuestsDeps {
  names: WorldNames;
  reporter: Reporter;
  outboundPerSecond: number;
  certificate: () => CertificateFiles;
  /** Called with the guests that are on, whenever they change. */
  changed: (running: readonly GuestDefinition[]) => void;
}

export function createGuests(deps: GuestsDeps): Guests {
  const definitions = new Map<string, GuestDefinition>();
  const processes = new Map<string, SupervisedProcess>();
  let queue: Promise<unknown> = Promise.resolve();

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work);
    queue = result.catch(() => {});
    return result;
  };
  const save = () => writeGuestFile(deps.names.guestsFile, [...definitions.values()]);
  const running = () => [...definitions.values()].filter((guest) => processes.has(guest.name));

  const switchOn = async (guest: GuestDefinition): Promise<void> => {
    if (processes.has(guest.name)) return;
    await plugGuest(deps.names, guest);
    const process = superviseGuest(deps, guest);
    processes.set(guest.name, process);
    try {
      await process.start();
    } catch (error) {
      await switchOff(guest);
      throw error;
    }
    deps.changed(running());
  };
  const switchOff = async (guest: GuestDefinition): Promise<void> => {
    const process = processes.get(guest.name);
    processes.delete(guest.name);
    deps.changed(running());
    await process?.stop();
    await unplugGuest(deps.names, guest);
  };
  const setPower = async (guest: GuestDefinition, power: Power): Promise<void> => {
    guest.power = power;
    save();
    await (power === 'on' ? switchOn(guest) : switchOff(guest));
  };
  const find = (name: string): GuestDefinition => {
    const guest = definitions.get(name);
    if (!guest) throw new CodedError('lab.guest_unknown', `There is no guest "${name}"`);
    return guest;
  };
  const show = (guest: GuestDefinition): Guest => ({
    ...guest,
    interface: nameGuestLink(guest.name),
    namespace: deps.names.guestNamespacePrefix + guest.name,
    talk: processes.get(guest.name)?.counts() ?? null,
  });

  return {
    start: () =>
      inTurn(async () => {
        for (const guest of readGuestFile(deps.names.guestsFile)) definitions.set(guest.name, guest);
        for (const guest of definitions.values()) if (guest.power === 'on') await switchOn(guest);
      }),
    stop: () =>
      inTurn(async () => {
        deps.changed([]);
        await Promise.all([...processes.values()].map((process) => process.stop()));
        processes.clear();
      }),
    list: () => [...definitions.values()].map(show).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    get: (name) => show(find(name)),
    put: (input) =>
      inTurn(async () => {
        const wanted = defineGuest(input);
        const existing = definitions.get(wanted.name);
        if (existing) {
          refuseDifference(existing, wanted);
          // A guest that an earlier call could not switch on is tried again.
          await setPower(existing, input.power ?? existing.power);
          return false;
        }
        refuseTaken(definitions.values(), wanted);
        definitions.set(wanted.name, wanted);
        await setPower(wanted, wanted.power);
        return true;
      }),
    setPower: (name, power) => inTurn(() => setPower(find(name), power)),
    restart: (name) =>
      inTurn(async () => {
        await setPower(find(name), 'off');
        await setPower(find(name), 'on');
      }),
    remove: (name) =>
      inTurn(async () => {
        const guest = definitions.get(name);
        if (!guest) return;
        await switchOff(guest);
        definitions.delete(name);
        save();
      }),
  };
}

function superviseGuest(deps: GuestsDeps, guest: GuestDefinition): SupervisedProcess {
  const families = guest.addresses.map((entry): Family => (entry.address.includes(':') ? 6 : 4));
  const input: GuestProcessInput = {
    families: [...new Set(families)],
    outboundPerSecond: deps.outboundPerSecond,
    ...deps.certificate(),
  };
  const namespace = deps.names.guestNamespacePrefix + guest.name;
  return superviseProcess({ namespace, file: 'traffic/guest-process.ts', input, reporter: deps.reporter });
}

function refuseDifference(existing: GuestDefinition, wanted: GuestDefinition): void {
  if (isSameGuest(existing, wanted)) return;
  const message = `The guest "${wanted.name}" stands with another MAC or addresses. Destroy it first`;
  throw new CodedError('lab.guest_differs', message);
}

function refuseTaken(others: Iterable<GuestDefinition>, wanted: GuestDefinition): void {
  const addresses = new Set(wanted.addresses.map((entry) => entry.address));
  for (const other of others) {
    if (other.mac === wanted.mac) {
      throw new CodedError('lab.mac_taken', `${wanted.mac} belongs to the guest "${other.name}"`);
    }
    const taken = other.addresses.find((entry) => addresses.has(entry.address));
    if (taken) {
      throw new CodedError('lab.address_taken', `${taken.address} belongs to the guest "${other.name}"`);
    }
  }
}
