/**
 * The guests of one world: defined, powered, restarted, removed; kept on disk.
 *
 * Calls run one after another, whoever makes them. A definition is on disk before its guest is made and until its
 * guest is removed, so a crash in between leaves nothing that the next start would not put right.
 */
import { CodedError } from '#common/errors/index.ts';
import type { TalkCounts } from '../traffic/talk.ts';
import { nameGuestLink } from '../world/name-world.ts';
import {
  defineGuest,
  type GuestDefinition,
  type GuestInput,
  isSameGuest,
  type Power,
} from './guest-definition.ts';
import { readGuestFile, writeGuestFile } from './guest-file.ts';
import { createGuestPower, type GuestPowerDeps } from './guest-power.ts';

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

export interface GuestsDeps extends Omit<GuestPowerDeps, 'changed'> {
  /** Called with the guests that are on, whenever they change. */
  changed: (running: readonly GuestDefinition[]) => void;
}

export function createGuests(deps: GuestsDeps): Guests {
  const { names } = deps;
  const definitions = new Map<string, GuestDefinition>();
  const inTurn = createTurns();
  const machines = createGuestPower({
    ...deps,
    changed: (running) => deps.changed([...definitions.values()].filter((guest) => running.has(guest.name))),
  });
  const save = () => writeGuestFile(names.guestsFile, [...definitions.values()]);
  const setPower = async (guest: GuestDefinition, power: Power): Promise<void> => {
    guest.power = power;
    save();
    await (power === 'on' ? machines.switchOn(guest) : machines.switchOff(guest));
  };
  const put = async (input: GuestInput): Promise<boolean> => {
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
  };
  const remove = async (name: string): Promise<void> => {
    const guest = definitions.get(name);
    if (!guest) return;
    await machines.switchOff(guest);
    definitions.delete(name);
    save();
  };
  const find = (name: string): GuestDefinition => {
    const guest = definitions.get(name);
    if (!guest) throw new CodedError('lab.guest_unknown', `There is no guest "${name}"`);
    return guest;
  };
  const show = (guest: GuestDefinition): Guest => ({
    ...guest,
    interface: nameGuestLink(guest.name),
    namespace: names.guestNamespacePrefix + guest.name,
    talk: machines.counts(guest.name),
  });

  return {
    start: () =>
      inTurn(async () => {
        for (const guest of readGuestFile(names.guestsFile)) definitions.set(guest.name, guest);
        for (const guest of definitions.values()) if (guest.power === 'on') await machines.switchOn(guest);
      }),
    stop: () => inTurn(() => machines.stopAll()),
    list: () => [...definitions.values()].map(show).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    get: (name) => show(find(name)),
    put: (input) => inTurn(() => put(input)),
    setPower: (name, power) => inTurn(() => setPower(find(name), power)),
    restart: (name) =>
      inTurn(async () => {
        await setPower(find(name), 'off');
        await setPower(find(name), 'on');
      }),
    remove: (name) => inTurn(() => remove(name)),
  };
}

/** Lets works run one after another, whatever becomes of each. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
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
