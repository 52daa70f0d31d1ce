/**
 * Attaches the counting program to an interface, and finds it there.
 *
 * The program hangs at the interface's tc hooks (clsact) of both directions, and its maps are pinned: both outlive every sensor. The
 * pins are in a file system of their own (`pinRoot`), because that of systemd admits root alone.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';
import { giveTree } from '#common/folders/index.ts';
import { KernelCounter } from './counter.ts';
import { KindReader } from './kind-reader.ts';
import { layoutVersion, type MapName, mapNames } from './layout.ts';
import { libbpf, must } from './libbpf.ts';
import { loadCounter } from './load-counter.ts';

/** Where the maps of all interfaces are pinned. */
export const pinRoot = '/run/svc-sensor/kernel';
const bpfMagic = 0xcafe4a11;

const ingress = 1;
const egress = 2;
const replace = 1;
/** Our filters: before those of others. The number of one is that of its owner plus its direction. */
const priority = 1;
const owners = { sensor: 0x5356_0000, command: 0x5356_0010 } as const;
const filterOwner = 0x5356_0020;
/** Changes with the maps of the filter and with what they mean: an older program does not count what it drops by the minute. */
const filterVersion = 3;
const loopback = 772;
const withoutHeader = 65_534;
const isThere = -koffi.os.errno.EEXIST!;
const localSocket = 1;
const datagrams = 2;
const closeOnExec = 0o2000000;
const readFlags = 0x8913;
const writeFlags = 0x8914;
const promiscuous = 0x100;
const library = koffi.load(null);
const system = {
  socket: library.func('int socket(int domain, int type, int protocol)'),
  ioctl: library.func('int ioctl(int fd, unsigned long request, void *argument)'),
  close: library.func('int close(int fd)'),
};

/**
 * Makes the places of the pins of these interfaces and gives them to a user; for root. Those of interfaces and
 * network namespaces that are gone are removed, and with them the memory of their counters.
 */
export function preparePins(names: readonly string[], { uid, gid }: { uid: number; gid: number }): void {
  mkdirSync(pinRoot, { recursive: true, mode: 0o755 });
  if (!isPinRoot()) {
    const options = ['-t', 'bpf', '-o', 'mode=0711', 'svc-sensor', pinRoot];
    const { status, stderr } = spawnSync('mount', options, { encoding: 'utf8' });
    if (status !== 0)
      throw new CodedError(
        'kernel.no_pins',
        `${pinRoot} can not be mounted: ${stderr?.trim() ?? 'no mount'}.`,
      );
  }
  // In this order: what comes meanwhile keeps its folder.
  const folders = readdirSync(pinRoot).filter((folder) => !folder.endsWith('.debug'));
  const namespaces = liveNamespaces();
  const present = readdirSync('/sys/class/net').filter(isKnown);
  const kept = new Set(
    present.flatMap((name) => [findCounted(name).pinFolder, findFiltered(name).pinFolder]),
  );
  for (const folder of folders) {
    const [of] = folder.split('-');
    const isKept = of === String(namespace()) ? kept.has(`${pinRoot}/${folder}`) : namespaces.has(of!);
    if (!isKept) rmSync(`${pinRoot}/${folder}`, { recursive: true, force: true });
  }
  for (const name of names.filter((one) => existsSync(`/sys/class/net/${one}`)))
    for (const { pinFolder } of [findCounted(name), findFiltered(name)]) {
      mkdirSync(pinFolder, { recursive: true, mode: 0o700 });
      giveTree(pinFolder, { uid, gid });
    }
}

const isPinRoot = () => existsSync(pinRoot) && statfsSync(pinRoot).type === bpfMagic;

const namespace = () => statSync('/proc/self/ns/net').ino;

/** Numbers of the network namespaces that a process or a name holds. */
function liveNamespaces(): Set<string> {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const names = existsSync('/run/netns') ? readdirSync('/run/netns') : [];
  const files = [...processes.map((id) => `/proc/${id}/ns/net`), ...names.map((one) => `/run/netns/${one}`)];
  return new Set(
    files.flatMap((file) => {
      try {
        return [String(statSync(file).ino)];
      } catch {
        // The process ended meanwhile.
        return [];
      }
    }),
  );
}

/** One interface of this network namespace; its number is used once. */
export interface Interface {
  name: string;
  index: number;
  isEthernet: boolean;
  directions: readonly number[];
  /** Number of our filters. */
  owner: number;
  pinFolder: string;
}

export const isKnown = (name: string) => {
  if (!existsSync(`/sys/class/net/${name}/type`)) return false;
  const type = Number(readFileSync(`/sys/class/net/${name}/type`, 'utf8'));
  return type === 1 || type === loopback || type === withoutHeader;
};

function findInterface(name: string, owner: number): Interface {
  const read = (file: string) => Number(readFileSync(`/sys/class/net/${name}/${file}`, 'utf8'));
  if (!existsSync(`/sys/class/net/${name}/ifindex`))
    throw new CodedError('capture.no_interface', `There is no network interface ${name}.`);
  const [index, type] = [read('ifindex'), read('type')];
  if (!isKnown(name))
    throw new CodedError('kernel.link_type', `Interface ${name} has neither Ethernet nor plain IP frames.`);
  return {
    name,
    index,
    isEthernet: type !== withoutHeader,
    // On the loopback interface a packet appears twice, outgoing and incoming.
    directions: type === loopback ? [ingress] : [ingress, egress],
    owner,
    pinFolder: `${pinRoot}/${namespace()}-${index}-v${layoutVersion}`,
  };
}

const findCounted = (name: string) => findInterface(name, owners.sensor);

/** As the filter sees it: its program of tc has the way out alone. */
export function findFiltered(name: string): Interface {
  const one = findInterface(name, filterOwner);
  const pinFolder = `${pinRoot}/${namespace()}-${one.index}-filter-v${filterVersion}`;
  return { ...one, directions: [egress], pinFolder };
}

/**
 * Attaches the program to this interface; one that is there already goes on with its counters. Needs CAP_BPF and CAP_NET_ADMIN.
 * Throws a `CodedError` (`kernel.…`) with what is missing.
 */
export function attachCounter(name: string): void {
  const one = findCounted(name);
  // Pins without a program are of one that was taken off.
  if (!isAttached(one)) unpin(one);
  const { counter, programFd, unload } = loadCounter(one.pinFolder, one.isEthernet);
  try {
    counter.beat();
    hang(one, programFd);
    setPromiscuous(name, true);
  } catch (error) {
    detachCounter(name);
    throw error;
  } finally {
    unload();
  }
}

/** Takes the program and its counters off an interface. True where there was one. */
export function detachCounter(name: string): boolean {
  const removed = Object.values(owners).map((owner) => unhang(findInterface(name, owner)));
  unpin(findCounted(name));
  if (removed.includes(true)) setPromiscuous(name, false);
  return removed.includes(true);
}

/**
 * A bridge shows what passes between its ports, and a mirror what it gets, in promiscuous mode alone. Packet sockets have it while they
 * are open; the kernel is to count the same without them.
 */
function setPromiscuous(name: string, isOn: boolean): void {
  const fd: number = system.socket(localSocket, datagrams | closeOnExec, 0);
  const request = Buffer.alloc(40);
  request.write(name, 0, 'latin1');
  const call = (number: number) =>
    must(system.ioctl(fd, number, request) < 0 ? -koffi.errno() : 0, `change the mode of ${name}`);
  try {
    call(readFlags);
    const flags = request.readUInt16LE(16);
    request.writeUInt16LE(isOn ? flags | promiscuous : flags & ~promiscuous, 16);
    call(writeFlags);
  } finally {
    system.close(fd);
  }
}

/**
 * The same for these interfaces, or for every one of this network namespace; returns the names of those that had one. The places of
 * the pins go with the last one.
 */
export function removeCounters(names: readonly string[] | null): string[] {
  const removed = (names ?? readdirSync('/sys/class/net')).filter((name) => {
    if (!isKnown(name)) return false;
    const isRemoved = detachCounter(name);
    rmSync(findCounted(name).pinFolder, { recursive: true, force: true });
    return isRemoved;
  });
  const isLast = isPinRoot() && readdirSync(pinRoot).every((name) => name.endsWith('.debug'));
  if (isLast && spawnSync('umount', [pinRoot]).status === 0) rmSync(pinRoot, { recursive: true });
  return removed;
}

export function unpin({ pinFolder }: Interface): void {
  if (!existsSync(pinFolder)) return;
  for (const pin of readdirSync(pinFolder)) unlinkSync(`${pinFolder}/${pin}`);
}

/** Counts on this interface with counters of its own, beside those of a sensor, until `end`; `prepare` is called before. */
export function countBriefly(
  name: string,
  prepare: (counter: KernelCounter) => void,
): { counter: KernelCounter; end(): void } {
  const one = findInterface(name, owners.command);
  const { counter, programFd, unload } = loadCounter(null, one.isEthernet);
  const end = () => {
    unhang(one);
    unload();
  };
  try {
    prepare(counter);
    hang(one, programFd);
  } catch (error) {
    end();
    throw error;
  }
  return { counter, end: () => void unhang(one) };
}

export const readKinds = (counter: KernelCounter) => new KindReader(counter);

export interface AttachedCounter {
  counter: KernelCounter;
  /** False once the interface is gone, or the program was taken off. */
  isAttached(): boolean;
}

/** The counters that `attachCounter` has left at an interface. Throws a `CodedError` where there are none. */
export function openCounter(name: string): AttachedCounter {
  const one = findCounted(name);
  if (!isAttached(one))
    throw new CodedError('kernel.not_attached', `No counting program is attached to ${name}.`);
  const bpf = libbpf();
  const maps = mapNames.map((map) => [
    map,
    must(bpf.openPinned(`${one.pinFolder}/${map}`), `open the counters of ${name}`),
  ]);
  return {
    counter: new KernelCounter(Object.fromEntries(maps) as Record<MapName, number>),
    isAttached: () => isAttached(one),
  };
}

/** Attaches the program at the hooks of both directions, in place of one that is there. */
export function hang(one: Interface, programFd: number): void {
  const bpf = libbpf();
  for (const direction of one.directions) {
    const made: number = bpf.createHook(hookOf(one, direction));
    if (made !== isThere) must(made, `add "clsact" to ${one.name}`);
    const filter = { ...filterAt(one, direction), prog_fd: programFd, flags: replace };
    must(bpf.attach(hookOf(one, direction), filter), `attach the counting program to ${one.name}`);
  }
  if (isSharedHook(one))
    throw new CodedError(
      'kernel.hook_taken',
      `Interface ${one.name} has a queueing discipline "ingress", beside which there is no room for "clsact".`,
    );
}

/** True where the program was attached. The hooks go with the last filter. */
export function unhang(one: Interface): boolean {
  const wasThere = takeOff(one);
  if (wasThere && !hasFilters(one.name)) libbpf().destroyHook(hookOf(one, ingress + egress));
  return wasThere;
}

/** The same; the hooks stay. What is attached after that is the first of its priority. */
export function takeOff(one: Interface): boolean {
  const results = one.directions.map((direction) =>
    libbpf().detach(hookOf(one, direction), filterAt(one, direction)),
  );
  return results.includes(0);
}

/** True when the filter of each direction is at its hook, and its maps are pinned. */
function isAttached(one: Interface): boolean {
  if (!existsSync(one.pinFolder) || readdirSync(one.pinFolder).length < mapNames.length) return false;
  return isHung(one) && !isSharedHook(one);
}

/** True when the filter of each direction is at its hook. */
export const isHung = (one: Interface) =>
  one.directions.every((direction) => isAt(one, direction, direction));

/** "ingress" has one hook for what is attached to either direction. */
const isSharedHook = (one: Interface) => one.directions.length > 1 && isAt(one, ingress, egress);

const isAt = (one: Interface, hook: number, filter: number) =>
  libbpf().query(hookOf(one, hook), filterAt(one, filter)) === 0;

const hookOf = (one: Interface, direction: number) => ({
  sz: libbpf().sizes.hook,
  ifindex: one.index,
  attach_point: direction,
  parent: 0,
});

const filterAt = (one: Interface, direction: number) => ({
  sz: libbpf().sizes.filter,
  prog_fd: 0,
  flags: 0,
  prog_id: 0,
  handle: one.owner + direction,
  priority,
});

/** True when others use the hooks too, or it can not be found out. */
function hasFilters(name: string): boolean {
  return ['ingress', 'egress'].some((hook) => {
    const { status, stdout } = spawnSync('tc', ['filter', 'show', 'dev', name, hook], { encoding: 'utf8' });
    return status !== 0 || stdout.trim() !== '';
  });
}
