/**
 * Sends frames through a packet socket that is bound to one interface, many with each system call.
 *
 * A bound packet socket can't send through any other interface: no route decides where a frame goes. Frames lie in
 * memory outside of the engine's heap, because the kernel gets their addresses; they are written in place.
 */
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';

const afPacket = 17;
const sockRaw = 3;
const sockCloexec = 0o2000000;
const solPacket = 263;
const packetQdiscBypass = 20;
const protReadWrite = 3;
const mapPrivateAnonymous = 0x22;
/** Sizes of `mmsghdr` and `iovec` where a pointer has eight bytes. */
const messageBytes = 64;
const vectorBytes = 16;
const batchMax = 64;
const slotBytes = 2048;
const framesAt = batchMax * (messageBytes + vectorBytes);
const memoryBytes = framesAt + batchMax * slotBytes;
/** The link's queue is full: the packet is lost, as on a real line. */
const busy = new Set([koffi.os.errno.EAGAIN, koffi.os.errno.ENOBUFS]);

export interface FrameSender {
  /** Sends at most `count` frames, each written by `write` at an offset; returns how many were sent. */
  send(count: number, write: (bytes: Uint8Array, at: number) => number): number;
  close(): void;
}

function loadLibrary() {
  const library = koffi.load(null);
  return {
    socket: library.func('int socket(int domain, int type, int protocol)'),
    setsockopt: library.func(
      'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
    ),
    bind: library.func('int bind(int fd, const void *address, uint32_t length)'),
    sendmmsg: library.func('int sendmmsg(int fd, void *messages, unsigned int count, int flags)'),
    mmap: library.func('void *mmap(void *at, size_t length, int prot, int flags, int fd, int64_t offset)'),
    munmap: library.func('int munmap(void *at, size_t length)'),
    close: library.func('int close(int fd)'),
    nameToIndex: library.func('unsigned int if_nametoindex(const char *name)'),
  };
}

/** Opens a sender on an interface of this network namespace; throws `lab.attack_failed`. */
export function openFrameSender(interfaceName: string): FrameSender {
  const c = loadLibrary();
  const index: number = c.nameToIndex(interfaceName);
  if (index === 0) throw failed(`find the interface ${interfaceName}`);
  // Protocol 0: the socket receives nothing.
  const fd: number = c.socket(afPacket, sockRaw | sockCloexec, 0);
  if (fd < 0) throw failed('open a packet socket');
  const one = Buffer.from([1, 0, 0, 0]);
  const address = Buffer.alloc(20);
  address.writeUInt16LE(afPacket, 0);
  address.writeInt32LE(index, 4);
  if (
    c.setsockopt(fd, solPacket, packetQdiscBypass, one, one.length) !== 0 ||
    c.bind(fd, address, 20) !== 0
  ) {
    const error = failed(`bind to ${interfaceName}`);
    c.close(fd);
    throw error;
  }
  const memory: unknown = c.mmap(null, memoryBytes, protReadWrite, mapPrivateAnonymous, -1, 0);
  const start = koffi.address(memory);
  const view = new DataView(koffi.view(memory, memoryBytes));
  layOut(view, start);
  const bytes = new Uint8Array(view.buffer);
  const lengthAt = (slot: number) => batchMax * messageBytes + slot * vectorBytes + 8;

  const sendBatch = (count: number): number => {
    const sent: number = c.sendmmsg(fd, memory, count, 0);
    if (sent >= 0) return sent;
    if (busy.has(koffi.errno())) return 0;
    throw failed('send');
  };
  return {
    send(count, write) {
      let sent = 0;
      for (let done = 0; done < count; done += batchMax) {
        const batch = Math.min(batchMax, count - done);
        for (let slot = 0; slot < batch; slot += 1) {
          // The upper half of the length stays zero.
          view.setUint32(lengthAt(slot), write(bytes, framesAt + slot * slotBytes), true);
        }
        sent += sendBatch(batch);
      }
      return sent;
    },
    close() {
      c.munmap(memory, memoryBytes);
      c.close(fd);
    },
  };
}

/** Message after message, each with one vector, each of which points to its frame. */
function layOut(view: DataView, start: bigint): void {
  for (let slot = 0; slot < batchMax; slot += 1) {
    const message = slot * messageBytes;
    const vector = batchMax * messageBytes + slot * vectorBytes;
    view.setBigUint64(message + 16, start + BigInt(vector), true);
    view.setBigUint64(message + 24, 1n, true);
    view.setBigUint64(vector, start + BigInt(framesAt + slot * slotBytes), true);
  }
}

/** Reads the error of the call before. */
function failed(step: string): CodedError {
  const errno = koffi.errno();
  const name = Object.entries(koffi.os.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
  return new CodedError('lab.attack_failed', `Could not ${step}: ${name}`);
}
