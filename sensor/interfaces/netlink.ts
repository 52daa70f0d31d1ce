/**
 * Dumps the kernel's tables of links, addresses, neighbours and routes (rtnetlink) through koffi. Needs no capability.
 */
import koffi from 'koffi';

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
