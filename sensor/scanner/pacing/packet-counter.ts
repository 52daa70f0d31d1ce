/**
 * Counts the packets that leave an interface from one address to another, on the wire and not by what a scanner says.
 *
 * A packet socket with a filter that nothing is read from: the kernel counts what passed the filter, also when it has no
 * room to keep it. It takes CAP_NET_RAW and nothing else. TCP other than openings is not counted: it is not the scan's.
 */
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';

const afPacket = 17;
/** Starts at the network header of any link. */
const sockDatagram = 2;
const sockCloexec = 0o2000000;
const ethPAll = 3;
const solSocket = 1;
const soReceiveBuffer = 8;
const soAttachFilter = 26;
const solPacket = 263;
const packetStatistics = 6;
/** Address of the packet's kind for filters, and the kind of those that leave. */
const packetKind = 0xffff_f004;
const packetOutgoing = 4;
const loadWord = 0x20;
const loadByte = 0x30;
const jumpEqual = 0x15;
const jumpSet = 0x45;
const answer = 0x06;
const tcp = 6;
const udp = 17;
const syn = 0x02;
const ack = 0x10;

interface Instruction {
  code: number;
  /** How many instructions are skipped when it is true; false ends without a count. */
  k: number;
  /** A jump that goes on only when it is false. */
  isNegated?: boolean;
}

export type PacketCounter = ReturnType<typeof openPacketCounter>;

/** Starts to count. Throws a `CodedError` (`scan.not_permitted`, `scan.no_interface`). */
export function openPacketCounter(interfaceName: string, source: string, target: string) {
  const c = loadLibrary();
  const index = c.nameToIndex(interfaceName);
  if (index === 0)
    throw new CodedError('scan.no_interface', `There is no network interface ${interfaceName}.`);
  const fd = c.socket(afPacket, sockDatagram | sockCloexec, 0);
  if (fd < 0) throw notPermitted();
  const room = Buffer.alloc(4);
  c.setsockopt(fd, solSocket, soReceiveBuffer, room, room.length);
  const program = filterProgram(source, target);
  const address = Buffer.alloc(20);
  address.writeUInt16LE(afPacket, 0);
  address.writeUInt16BE(ethPAll, 2);
  address.writeInt32LE(index, 4);
  if (
    c.attachFilter(fd, solSocket, soAttachFilter, program, 16) !== 0 ||
    c.bind(fd, address, address.length) !== 0
  ) {
    c.close(fd);
    throw notPermitted();
  }
  const statistics = Buffer.alloc(8);
  const length = Buffer.alloc(4);
  return {
    /** Packets since the last call. */
    take(): number {
      length.writeUInt32LE(statistics.length);
      if (c.getsockopt(fd, solPacket, packetStatistics, statistics, length) !== 0) return 0;
      return statistics.readUInt32LE(0);
    },
    close: () => c.close(fd),
  };
}

function notPermitted(): CodedError {
  return new CodedError(
    'scan.not_permitted',
    'Scanning needs the capability CAP_NET_RAW: run it as root, or under systemd with AmbientCapabilities=CAP_NET_RAW.',
  );
}

/** Outgoing, from here to there, and an opening of TCP, UDP, or neither of both. */
function filterProgram(source: string, target: string) {
  const from = Buffer.from(parseAddress(source)!);
  const to = Buffer.from(parseAddress(target)!);
  const isVersion4 = to.length === 4;
  const checks: Instruction[] = [
    { code: loadWord, k: packetKind },
    { code: jumpEqual, k: packetOutgoing },
  ];
  const compare = (bytes: Buffer, at: number) => {
    for (let i = 0; i < bytes.length; i += 4)
      checks.push({ code: loadWord, k: at + i }, { code: jumpEqual, k: bytes.readUInt32BE(i) });
  };
  compare(from, isVersion4 ? 12 : 8);
  compare(to, isVersion4 ? 16 : 24);
  const flagsAt = (isVersion4 ? 20 : 40) + 13;
  const count = checks.length;
  // The end: protocol; UDP counts; what is not TCP either does not; flags of TCP with SYN and without ACK.
  const end = [
    { code: loadByte, jt: 0, jf: 0, k: isVersion4 ? 9 : 6 },
    { code: jumpEqual, jt: 4, jf: 0, k: udp },
    { code: jumpEqual, jt: 0, jf: 4, k: tcp },
    { code: loadByte, jt: 0, jf: 0, k: flagsAt },
    { code: jumpSet, jt: 2, jf: 0, k: ack },
    { code: jumpSet, jt: 0, jf: 1, k: syn },
    { code: answer, jt: 0, jf: 0, k: 1 },
    { code: answer, jt: 0, jf: 0, k: 0 },
  ];
  const refusal = count + end.length - 1;
  const begin = checks.map(({ code, k }, at) => ({
    ...{ code, k, jt: 0 },
    jf: code === jumpEqual ? refusal - at - 1 : 0,
  }));
  const filter = [...begin, ...end];
  return { len: filter.length, filter };
}

let library: ReturnType<typeof openLibrary> | null = null;

/** Looked up once in each thread. */
function loadLibrary() {
  library ??= openLibrary();
  return library;
}

function openLibrary() {
  const c = koffi.load(null);
  const instruction = koffi.struct({ code: 'uint16', jt: 'uint8', jf: 'uint8', k: 'uint32' });
  const program = koffi.struct({ len: 'uint16', filter: koffi.pointer(instruction) });
  const attach = ['int', 'int', 'int', koffi.pointer(program), 'uint32_t'];
  return {
    socket: c.func('int socket(int domain, int type, int protocol)'),
    setsockopt: c.func('int setsockopt(int fd, int level, int name, const void *value, uint32_t length)'),
    getsockopt: c.func('int getsockopt(int fd, int level, int name, void *value, void *length)'),
    attachFilter: c.func('setsockopt', 'int', attach),
    bind: c.func('int bind(int fd, const void *address, uint32_t length)'),
    close: c.func('int close(int fd)'),
    nameToIndex: c.func('unsigned int if_nametoindex(const char *name)'),
  };
}
