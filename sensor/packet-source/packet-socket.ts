/**
 * System calls for a packet socket with a TPACKET_V3 ring, through koffi.
 *
 * Order matters: the socket is opened with protocol 0, which receives nothing; then the ring is created; then the bind
 * with ETH_P_ALL starts it. A socket opened with ETH_P_ALL would queue frames of every interface before its ring
 * exists.
 *
 * A packet socket bound to one interface sees each frame once: incoming and outgoing (PACKET_OUTGOING) frames are
 * different frames. Only on the loopback interface is one packet both, so outgoing ones are ignored there. A bridge
 * shows the traffic between its ports only in promiscuous mode.
 */
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';

const afPacket = 17;
const sockRaw = 3;
const sockCloexec = 0o2000000;
const ethPAll = 0x0003;
const solSocket = 1;
const soError = 4;
const soAttachFilter = 26;
const solPacket = 263;
const packetAddMembership = 1;
const packetRxRing = 5;
const packetStatistics = 6;
const packetVersion = 10;
const packetVnetHeader = 15;
const packetFanout = 18;
const packetIgnoreOutgoing = 23;
const fanoutHash = 0;
const fanoutUniqueId = 0x2000;
const tpacketV3 = 2;
const membershipPromiscuous = 1;
const siocgifhwaddr = 0x8927;
const hardwareLoopback = 772;
/** ARPHRD numbers to link types of capture files: Ethernet, loopback (Ethernet frames), and no link header. */
const linkTypes = new Map([
  [1, 1],
  [hardwareLoopback, 1],
  [0xfffe, 101],
]);
const protReadWrite = 3;
const mapShared = 1;
const pollIn = 1;
const pollError = 8;
const bpfReturn = 0x06;

const errnoNames = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

/** Functions of the C library, looked up once in each thread that opens a socket. */
function loadLibrary() {
  const library = koffi.load(null);
  const socketFilter = koffi.struct({ code: 'uint16', jt: 'uint8', jf: 'uint8', k: 'uint32' });
  const filterProgram = koffi.struct({ len: 'uint16', filter: koffi.pointer(socketFilter) });
  return {
    socket: library.func('int socket(int domain, int type, int protocol)'),
    setsockopt: library.func(
      'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
    ),
    attachFilter: library.func('setsockopt', 'int', [
      'int',
      'int',
      'int',
      koffi.pointer(filterProgram),
      'uint32_t',
    ]),
    getsockopt: library.func('int getsockopt(int fd, int level, int name, void *value, void *length)'),
    bind: library.func('int bind(int fd, const void *address, uint32_t length)'),
    ioctl: library.func('int ioctl(int fd, unsigned long request, void *argument)'),
    mmap: library.func('void *mmap(void *at, size_t length, int prot, int flags, int fd, int64_t offset)'),
    munmap: library.func('int munmap(void *at, size_t length)'),
    poll: library.func('int poll(void *fds, unsigned long count, int timeout)'),
    close: library.func('int close(int fd)'),
    nameToIndex: library.func('unsigned int if_nametoindex(const char *name)'),
  };
}

export interface PacketSocketOptions {
  interfaceName: string;
  blockBytes: number;
  blockCount: number;
  /** The kernel returns a block that is not full after this time. */
  retireMs: number;
  /** Frames are truncated to this length; headers still have the full length. */
  snapBytes: number;
  /** Request the header that describes how offload merged a frame; it may be unavailable. */
  wantsOffloadHeader: boolean;
  /** Members of one group share the interface's frames, each flow in one member; `new` creates a group. */
  fanout: 'new' | number | null;
}

type Library = ReturnType<typeof loadLibrary>;

/** Opens and starts a socket on an interface. Throws a `CodedError` (`capture.…`) with what is missing. */
export function openPacketSocket(options: PacketSocketOptions): PacketSocket {
  const c = loadLibrary();
  const { interfaceName } = options;
  const index: number = c.nameToIndex(interfaceName);
  if (index === 0) {
    throw new CodedError(
      'capture.no_interface',
      `There is no network interface ${interfaceName}: name one that 'ip link' shows.`,
    );
  }
  const fd: number = c.socket(afPacket, sockRaw | sockCloexec, 0);
  if (fd < 0) throw systemError(interfaceName, 'open a packet socket', koffi.errno());
  const setup = new SocketSetup(c, fd, interfaceName);
  let ring: MappedRing | null = null;
  try {
    const linkType = setup.readLinkType();
    setup.set(packetVersion, words(tpacketV3), 'choose TPACKET_V3');
    // Older kernels have no such header with a ring; merged frames are then recognized but not counted.
    const hasOffloadHeader = options.wantsOffloadHeader && setup.trySet(packetVnetHeader, words(1));
    setup.attachSnapFilter(options.snapBytes);
    ring = setup.makeRing(options);
    setup.listen(index);
    const fanoutGroup = options.fanout === null ? null : setup.joinGroup(options.fanout);
    return new PacketSocket({ c, fd, interfaceName, index, ring, linkType, hasOffloadHeader, fanoutGroup });
  } catch (error) {
    release(c, fd, ring);
    throw error;
  }
}

/** The ring in this process's memory. */
interface MappedRing {
  address: unknown;
  length: number;
}

function release(c: Library, fd: number, ring: MappedRing | null): void {
  if (ring) c.munmap(ring.address, ring.length);
  c.close(fd);
}

/** The steps from a new socket to one that listens; each throws with the step's name. */
class SocketSetup {
  readonly #c: Library;
  readonly #fd: number;
  readonly #interfaceName: string;

  constructor(c: Library, fd: number, interfaceName: string) {
    this.#c = c;
    this.#fd = fd;
    this.#interfaceName = interfaceName;
  }

  trySet(name: number, value: Buffer): boolean {
    return this.#c.setsockopt(this.#fd, solPacket, name, value, value.length) === 0;
  }

  set(name: number, value: Buffer, step: string): void {
    if (!this.trySet(name, value)) throw this.#failure(step);
  }

  readLinkType(): number {
    const request = Buffer.alloc(40);
    request.write(this.#interfaceName.slice(0, 15), 0, 'latin1');
    if (this.#c.ioctl(this.#fd, siocgifhwaddr, request) !== 0) throw this.#failure('ask for the link type');
    const hardware = request.readUInt16LE(16);
    const linkType = linkTypes.get(hardware);
    if (linkType === undefined) {
      throw new CodedError(
        'capture.link_type',
        `Interface ${this.#interfaceName} has neither Ethernet nor plain IP frames (hardware type ${hardware}). Capture another one.`,
      );
    }
    if (hardware === hardwareLoopback) this.set(packetIgnoreOutgoing, words(1), 'ignore outgoing packets');
    return linkType;
  }

  /** A program of one instruction without a load: a load beyond the end of a short packet would drop it uncounted. */
  attachSnapFilter(snapBytes: number): void {
    const program = { len: 1, filter: [{ code: bpfReturn, jt: 0, jf: 0, k: snapBytes }] };
    if (this.#c.attachFilter(this.#fd, solSocket, soAttachFilter, program, 16) !== 0)
      throw this.#failure('attach the filter');
  }

  makeRing({ blockBytes, blockCount, retireMs }: PacketSocketOptions): MappedRing {
    const length = blockBytes * blockCount;
    this.set(
      packetRxRing,
      words(blockBytes, blockCount, blockBytes, blockCount, retireMs, 0, 0),
      `make a ring of ${length / 1024 / 1024} MiB`,
    );
    const address = this.#c.mmap(null, length, protReadWrite, mapShared, this.#fd, 0);
    if (koffi.address(address) === 0xffff_ffff_ffff_ffffn) throw this.#failure('map the ring');
    return { address, length };
  }

  /** Receives every frame of the interface from now on. */
  listen(index: number): void {
    const membership = Buffer.alloc(16);
    membership.writeInt32LE(index, 0);
    membership.writeUInt16LE(membershipPromiscuous, 4);
    this.set(packetAddMembership, membership, 'make the interface promiscuous');
    const address = Buffer.alloc(20);
    address.writeUInt16LE(afPacket, 0);
    address.writeUInt16BE(ethPAll, 2);
    address.writeInt32LE(index, 4);
    if (this.#c.bind(this.#fd, address, address.length) !== 0) throw this.#failure('listen');
  }

  /** Only a started socket can join. The kernel chooses a group number that no other program on the host uses. */
  joinGroup(fanout: 'new' | number): number {
    const type = fanout === 'new' ? fanoutHash | fanoutUniqueId : fanoutHash;
    const value = words((fanout === 'new' ? 0 : fanout) + type * 0x10000);
    this.set(packetFanout, value, 'share the interface by fanout');
    const known = Buffer.alloc(4);
    if (this.#c.getsockopt(this.#fd, solPacket, packetFanout, known, words(4)) !== 0)
      throw this.#failure('read the fanout group');
    return known.readUInt32LE(0) & 0xffff;
  }

  /** Reads the error of the call before. */
  #failure(step: string): CodedError {
    return systemError(this.#interfaceName, step, koffi.errno());
  }
}

interface RingSocketParts {
  c: Library;
  fd: number;
  interfaceName: string;
  index: number;
  ring: MappedRing;
  linkType: number;
  hasOffloadHeader: boolean;
  fanoutGroup: number | null;
}

/** A socket that listens. */
export class PacketSocket {
  readonly linkType: number;
  /** The ring's memory. An access after `close` crashes the process. */
  readonly memory: ArrayBuffer;
  readonly hasOffloadHeader: boolean;
  readonly fanoutGroup: number | null;
  readonly #parts: RingSocketParts;
  readonly #pollSet = Buffer.alloc(8);
  readonly #statistics = Buffer.alloc(12);
  readonly #optionLength = Buffer.alloc(4);
  readonly #errorValue = Buffer.alloc(4);
  #isClosed = false;

  constructor(parts: RingSocketParts) {
    this.#parts = parts;
    this.linkType = parts.linkType;
    this.memory = koffi.view(parts.ring.address, parts.ring.length);
    this.hasOffloadHeader = parts.hasOffloadHeader;
    this.fanoutGroup = parts.fanoutGroup;
  }

  /** Waits until a block is ready. Returns false when the interface is gone. */
  wait(timeoutMs: number): boolean {
    const { c, fd } = this.#parts;
    const pollSet = this.#pollSet;
    pollSet.writeInt32LE(fd, 0);
    pollSet.writeInt16LE(pollIn, 4);
    pollSet.writeInt16LE(0, 6);
    c.poll(pollSet, 1, timeoutMs);
    if ((pollSet.readInt16LE(6) & pollError) === 0) return true;
    // The interface is down or gone. Reading the error clears it; otherwise every poll would return at once.
    this.#optionLength.writeUInt32LE(4);
    c.getsockopt(fd, solSocket, soError, this.#errorValue, this.#optionLength);
    return this.isPresent();
  }

  /** False when the interface is gone or has another name. */
  isPresent(): boolean {
    const { c, interfaceName, index } = this.#parts;
    return c.nameToIndex(interfaceName) === index;
  }

  /** Packets dropped since the last call, and whether the ring was full in between. */
  takeDropped(): { packets: number; wasFull: boolean } {
    const { c, fd } = this.#parts;
    const statistics = this.#statistics;
    this.#optionLength.writeUInt32LE(statistics.length);
    // The kernel resets its counters at every read.
    if (c.getsockopt(fd, solPacket, packetStatistics, statistics, this.#optionLength) !== 0) {
      return { packets: 0, wasFull: false };
    }
    return { packets: statistics.readUInt32LE(4), wasFull: statistics.readUInt32LE(8) > 0 };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { c, fd, ring } = this.#parts;
    release(c, fd, ring);
  }
}

function words(...values: number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) buffer.writeUInt32LE(value, i * 4);
  return buffer;
}

function systemError(interfaceName: string, step: string, errno: number): CodedError {
  const name = errnoNames.get(errno) ?? `errno ${errno}`;
  if (name === 'EPERM' || name === 'EACCES') {
    return new CodedError(
      'capture.not_permitted',
      `Capturing on ${interfaceName} needs the capability CAP_NET_RAW. Run the sensor as root or under systemd ` +
        'with AmbientCapabilities=CAP_NET_RAW, or replay a capture file with SVC_SENSOR_REPLAY=FILE.',
      { step },
    );
  }
  if (name === 'ENOMEM') {
    return new CodedError(
      'capture.no_memory',
      `Could not ${step} for ${interfaceName}: there is not enough free memory. Lower SVC_SENSOR_RING_MIB.`,
    );
  }
  return new CodedError('capture.failed', `Could not ${step} on ${interfaceName}: ${name}.`, { step, errno });
}
