/** Reads the kernel's tables by rtnetlink, with one dump each. */

import koffi from 'koffi';
import { formatAddress } from '#common/ip/index.ts';
import { type KernelTables, type LinkRow, macText, type NeighbourRow } from './read-files.ts';

const getLink = 18;
const getAddress = 22;
const getRoute = 26;
const getNeighbour = 30;
const familyBridge = 7;
const flagUp = 1;
/** Attribute numbers, by table. */
const Link = { address: 1, name: 3, mtu: 4, link: 5, master: 10, info: 18, linkNamespace: 37 } as const;
const Info = { kind: 1, data: 2 } as const;
const vlanId = 1;
const Address = { address: 1, local: 2 } as const;
const Neighbour = { target: 1, mac: 2, vlan: 5, master: 9 } as const;
const Route = { gateway: 5 } as const;
/** A neighbour whose MAC is known: reachable, stale, delay, probe, permanent. */
const stateKnown = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
const statePermanent = 0x80;
const flagRouter = 0x80;

/** Reads links, addresses, neighbours, bridges' forwarding tables and gateways. */
export function readNetlink(): KernelTables {
  const netlink = openNetlink();
  try {
    return {
      links: netlink.dump(getLink, Buffer.alloc(16)).map(linkOf),
      addresses: netlink.dump(getAddress, Buffer.alloc(8)).flatMap(addressOf),
      neighbours: [
        ...netlink.dump(getNeighbour, Buffer.alloc(12)).flatMap(neighbourOf),
        ...forwardingOf(netlink),
      ],
      gateways: netlink.dump(getRoute, Buffer.alloc(12)).flatMap((message) => {
        const gateway = readAttributes(message, 12).get(Route.gateway);
        return gateway ? [formatAddress(gateway)] : [];
      }),
    };
  } finally {
    netlink.close();
  }
}

function linkOf(message: NetlinkMessage): LinkRow {
  const attributes = readAttributes(message, 16);
  const number = (name: number) => attributes.get(name)?.readUInt32LE(0) ?? 0;
  const info = attributes.get(Link.info);
  const details = info ? readAttributes(info, 0) : new Map<number, Buffer>();
  const kind = textOf(details.get(Info.kind));
  const data = details.get(Info.data);
  const vlan = kind === 'vlan' && data ? (readAttributes(data, 0).get(vlanId)?.readUInt16LE(0) ?? 0) : 0;
  return {
    index: message.readInt32LE(4),
    name: textOf(attributes.get(Link.name)),
    mac: macText(attributes.get(Link.address)),
    kind,
    isUp: (message.readUInt32LE(8) & flagUp) !== 0,
    mtu: number(Link.mtu),
    master: number(Link.master),
    // The other end of a veth in another namespace is not a link of this namespace.
    parent: vlan > 0 && !attributes.has(Link.linkNamespace) ? number(Link.link) : 0,
    vlan,
  };
}

function addressOf(message: NetlinkMessage): { index: number; address: string }[] {
  const attributes = readAttributes(message, 8);
  const bytes = attributes.get(Address.local) ?? attributes.get(Address.address);
  if (!bytes || (bytes.length !== 4 && bytes.length !== 16)) return [];
  return [{ index: message.readUInt32LE(4), address: `${formatAddress(bytes)}/${message[1]!}` }];
}

function neighbourOf(message: NetlinkMessage): NeighbourRow[] {
  const attributes = readAttributes(message, 12);
  const target = attributes.get(Neighbour.target);
  const mac = macText(attributes.get(Neighbour.mac));
  const isKnown = (message.readUInt16LE(8) & stateKnown) !== 0;
  if (!isKnown || mac === '' || !target || (target.length !== 4 && target.length !== 16)) return [];
  // Entries of group addresses are artificial.
  if ((Number.parseInt(mac.slice(0, 2), 16) & 1) !== 0) return [];
  const isRouter = (message[10]! & flagRouter) !== 0;
  return [{ index: message.readInt32LE(4), mac, address: formatAddress(target), vlan: 0, isRouter }];
}

/** MACs learned by bridges; permanent entries are the host's own. */
function forwardingOf(netlink: Netlink): NeighbourRow[] {
  const head = Buffer.alloc(12);
  head[0] = familyBridge;
  return netlink.dump(getNeighbour, head).flatMap((message) => {
    const attributes = readAttributes(message, 12);
    const mac = macText(attributes.get(Neighbour.mac));
    const master = attributes.get(Neighbour.master)?.readUInt32LE(0);
    const isOwn = (message.readUInt16LE(8) & statePermanent) !== 0;
    if (mac === '' || master === undefined || isOwn) return [];
    if ((Number.parseInt(mac.slice(0, 2), 16) & 1) !== 0) return [];
    const vlan = attributes.get(Neighbour.vlan)?.readUInt16LE(0) ?? 0;
    return [{ index: master, mac, address: '', vlan, isRouter: false }];
  });
}

function textOf(bytes: Buffer | undefined): string {
  return bytes ? bytes.toString('utf8').replace(/\0+$/, '') : '';
}

// Dumps the kernel's tables of links, addresses, neighbours and routes (rtnetlink) through koffi. Needs no capability.

const afNetlink = 16;
const sockRaw = 3;
const sockCloexec = 0o2000000;
const netlinkRoute = 0;
const solSocket = 1;
const soReceiveTimeout = 20;
const requestDump = 0x0301;
const flagInterrupted = 0x10;
const messageDone = 3;
const messageError = 2;
const headerBytes = 16;
const answerBytes = 262_144;

/** Body of a message: a fixed header, then attributes. */
export type NetlinkMessage = Buffer;

export type Netlink = ReturnType<typeof openNetlink>;

/** Opens a socket to the kernel's routing tables. */
export function openNetlink() {
  const library = koffi.load(null);
  const socket = library.func('int socket(int domain, int type, int protocol)');
  const send = library.func('int64_t send(int fd, const void *bytes, size_t length, int flags)');
  const receive = library.func('int64_t recv(int fd, void *bytes, size_t length, int flags)');
  const setOption = library.func(
    'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
  );
  const close = library.func('int close(int fd)');
  const fd: number = socket(afNetlink, sockRaw | sockCloexec, netlinkRoute);
  if (fd < 0) throw new Error(`no netlink socket: errno ${koffi.errno()}`);
  // The kernel answers at once. The timeout keeps a fault from blocking the sensor.
  const twoSeconds = Buffer.alloc(16);
  twoSeconds.writeBigInt64LE(2n, 0);
  setOption(fd, solSocket, soReceiveTimeout, twoSeconds, twoSeconds.length);
  const answer = Buffer.alloc(answerBytes);
  let sequence = 0;

  function request(type: number, head: Buffer): void {
    sequence += 1;
    const bytes = Buffer.alloc(headerBytes + head.length);
    bytes.writeUInt32LE(bytes.length, 0);
    bytes.writeUInt16LE(type, 4);
    bytes.writeUInt16LE(requestDump, 6);
    bytes.writeUInt32LE(sequence, 8);
    head.copy(bytes, headerBytes);
    if (Number(send(fd, bytes, bytes.length, 0)) < 0) throw new Error(`netlink: errno ${koffi.errno()}`);
  }

  /** Returns false when the table changed during the dump, which may be inconsistent. */
  function collect(messages: NetlinkMessage[]): boolean {
    let isWhole = true;
    for (;;) {
      const length = Number(receive(fd, answer, answer.length, 0));
      if (length <= 0) throw new Error(`netlink does not answer: errno ${koffi.errno()}`);
      let at = 0;
      while (at + headerBytes <= length) {
        const size = answer.readUInt32LE(at);
        if (size < headerBytes || at + size > length) break;
        const type = answer.readUInt16LE(at + 4);
        if (answer.readUInt32LE(at + 8) === sequence) {
          if ((answer.readUInt16LE(at + 6) & flagInterrupted) !== 0) isWhole = false;
          if (type === messageDone) return isWhole;
          if (type === messageError)
            throw new Error(`netlink refuses: ${answer.readInt32LE(at + headerBytes)}`);
          messages.push(Buffer.from(answer.subarray(at + headerBytes, at + size)));
        }
        at += (size + 3) & ~3;
      }
    }
  }

  return {
    /** The messages that answer this dump request, without netlink headers. Throws when the kernel refuses. */
    dump(type: number, head: Buffer): NetlinkMessage[] {
      for (let attempt = 1; ; attempt += 1) {
        const messages: NetlinkMessage[] = [];
        request(type, head);
        if (collect(messages) || attempt === 3) return messages;
      }
    },
    close: () => {
      close(fd);
    },
  };
}

/** The attributes after a message header of `headLength` bytes; the last one of each number wins. */
export function readAttributes(bytes: Buffer, headLength: number): Map<number, Buffer> {
  const attributes = new Map<number, Buffer>();
  let at = headLength;
  while (at + 4 <= bytes.length) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    // The upper two bits are flags.
    attributes.set(bytes.readUInt16LE(at + 2) & 0x3fff, bytes.subarray(at + 4, at + length));
    at += (length + 3) & ~3;
  }
  return attributes;
}
