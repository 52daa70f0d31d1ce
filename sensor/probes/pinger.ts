/**
 * ICMP echoes over raw sockets through the C library; over the kernel's ping sockets when the host allows no raw
 * socket.
 *
 * One socket for each family. An answer must contain the attempt's random bytes, so that answers to other pings are
 * ignored. The round trip ends at the kernel's timestamp of the answer, so that a busy process does not make a target
 * look slow. Waiting for answers uses a thread of libuv's pool.
 */
import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import koffi from 'koffi';
import { describeError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { AttemptOutcome } from './attempts.ts';

/** Duration of one wait for answers; a stop waits at most as long. */
const waitMs = 500;

export type Pinger = ReturnType<typeof createPinger>;

interface Waiting {
  sentAtNs: bigint;
  startedMs: number;
  resolve(outcome: AttemptOutcome): void;
}

/** Creates a pinger; a socket is opened with the first address of its family. */
export function createPinger(reporter: Reporter) {
  const library = loadIcmpLibrary();
  const sockets = new Map<boolean, IcmpSocket>();
  const waiting = new Map<string, Waiting>();
  let sequence = 0;
  let isClosed = false;
  let reading: Promise<void> | null = null;

  function socketOf(isV6: boolean): IcmpSocket {
    const known = sockets.get(isV6) ?? openIcmpSocket(library, isV6);
    sockets.set(isV6, known);
    return known;
  }

  function take(socket: IcmpSocket, token: string): void {
    const one = waiting.get(token);
    if (!one) return;
    waiting.delete(token);
    one.resolve({ rttUs: roundTripUs(one, socket) });
  }

  async function read(): Promise<void> {
    while (!isClosed && waiting.size > 0) {
      const open = [...sockets.values()];
      await library.waitToRead(open, waitMs);
      for (const socket of open) socket.receive((token) => take(socket, token));
    }
    reading = null;
  }

  return {
    /** Rejects with an error that has the system's code. */
    ping(address: string, signal: AbortSignal): Promise<AttemptOutcome> {
      return new Promise((resolve, reject) => {
        const token = randomBytes(tokenBytes);
        const key = token.toString('hex');
        const socket = socketOf(isIPv6(address));
        const onAbort = () => {
          waiting.delete(key);
          reject(signal.reason);
        };
        signal.addEventListener('abort', onAbort, { once: true });
        waiting.set(key, {
          sentAtNs: library.nowNs(),
          startedMs: performance.now(),
          resolve(outcome) {
            signal.removeEventListener('abort', onAbort);
            resolve(outcome);
          },
        });
        try {
          sequence = (sequence + 1) & 0xffff;
          socket.send(address, sequence, token);
        } catch (error) {
          waiting.delete(key);
          signal.removeEventListener('abort', onAbort);
          throw error;
        }
        reading ??= read().catch((error) => {
          reading = null;
          reporter.warn('answers to echo requests can not be read', { why: describeError(error) });
        });
      });
    },
    async close() {
      isClosed = true;
      await reading;
      for (const socket of sockets.values()) socket.close();
      sockets.clear();
    },
  };
}

/** The time from the sending to the kernel's timestamp of the answer that was read last. */
function roundTripUs(one: Waiting, socket: IcmpSocket): number {
  const elapsedUs = (performance.now() - one.startedMs) * 1000;
  const stampNs = socket.lastStampNs();
  const stampedUs = stampNs === null ? -1 : Number(stampNs - one.sentAtNs) / 1000;
  // After a clock step in between the timestamp is useless; then monotonic time is used.
  return stampedUs > 0 && stampedUs <= elapsedUs ? stampedUs : elapsedUs;
}

// A socket for ICMP echoes of one family, through the C library; it never blocks.

const afInet = 2;
const afInet6 = 10;
const sockDatagram = 2;
const sockRaw = 3;
const sockCloexec = 0o2000000;
const sockNonblock = 0o4000;
const protocolIcmp = 1;
const protocolIcmp6 = 58;
const solRaw = 255;
const icmpFilter = 1;
const icmp6Filter = 1;
const siocgStampNs = 0x8907;
const pollIn = 1;
const dontWait = 0x40;
const clockRealtime = 0;
const errnoNames = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

/** Length of the random bytes in every echo. */
const tokenBytes = 16;

type IcmpSocket = ReturnType<typeof openIcmpSocket>;

/** The functions of the C library that echoes need. */
export type IcmpLibrary = ReturnType<typeof loadIcmpLibrary>;

function loadIcmpLibrary() {
  const library = koffi.load(null);
  const clock = library.func('int clock_gettime(int clock, void *time)');
  const poll = library.func('int poll(void *fds, unsigned long count, int timeout)');
  return {
    socket: library.func('int socket(int domain, int type, int protocol)'),
    setsockopt: library.func(
      'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
    ),
    sendto: library.func(
      'int64_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
    ),
    recv: library.func('int64_t recv(int fd, void *bytes, size_t length, int flags)'),
    ioctl: library.func('int ioctl(int fd, unsigned long request, void *argument)'),
    close: library.func('int close(int fd)'),
    /** The wall time since 1970. */
    nowNs(): bigint {
      const time = Buffer.alloc(16);
      clock(clockRealtime, time);
      return readTimeNs(time);
    },
    /** Waits on a thread of libuv's pool until one of the sockets has something to read, or the time is over. */
    waitToRead(sockets: readonly { fd: number }[], waitMs: number): Promise<void> {
      const set = Buffer.alloc(8 * sockets.length);
      for (const [i, { fd }] of sockets.entries()) {
        set.writeInt32LE(fd, i * 8);
        set.writeInt16LE(pollIn, i * 8 + 4);
      }
      return new Promise((resolve, reject) =>
        poll.async(set, sockets.length, waitMs, (error: Error | null) => (error ? reject(error) : resolve())),
      );
    },
  };
}

/** Opens a raw socket, or the kernel's ping socket when the host allows no raw one. */
function openIcmpSocket(c: IcmpLibrary, isV6: boolean) {
  const { fd, isRaw } = openDescriptor(c, isV6);
  const packet = Buffer.alloc(2048);
  const time = Buffer.alloc(16);
  // The first call enables the kernel's timestamps.
  c.ioctl(fd, siocgStampNs, time);
  return {
    fd,
    /** Throws an error that has the system's code. */
    send(address: string, sequence: number, token: Buffer) {
      const message = echoRequest(isV6, sequence, token);
      const to = socketAddress(address, isV6);
      if (c.sendto(fd, message, message.length, dontWait, to, to.length) < 0)
        throw systemError('send an echo request', koffi.errno());
    },
    /** Reads what has arrived; `take` gets the token of each echo reply, in hexadecimal. */
    receive(take: (token: string) => void) {
      for (;;) {
        const length = Number(c.recv(fd, packet, packet.length, dontWait));
        if (length < 0) return;
        // Packets from raw IPv4 sockets include the IP header.
        const start = isRaw && !isV6 ? (packet[0]! & 0x0f) * 4 : 0;
        if (length < start + 8 + tokenBytes || packet[start] !== (isV6 ? 129 : 0)) continue;
        take(packet.toString('hex', start + 8, start + 8 + tokenBytes));
      }
    },
    /** The kernel's time of the packet that was read last, since 1970; null when it has none. */
    lastStampNs: (): bigint | null => (c.ioctl(fd, siocgStampNs, time) === 0 ? readTimeNs(time) : null),
    close: () => void c.close(fd),
  };
}

function openDescriptor(c: IcmpLibrary, isV6: boolean): { fd: number; isRaw: boolean } {
  const [domain, protocol] = isV6 ? [afInet6, protocolIcmp6] : [afInet, protocolIcmp];
  let fd: number = c.socket(domain, sockRaw | sockCloexec | sockNonblock, protocol);
  const isRaw = fd >= 0;
  if (!isRaw) fd = c.socket(domain, sockDatagram | sockCloexec | sockNonblock, protocol);
  if (fd < 0) throw systemError('open a socket for ICMP', koffi.errno());
  if (isRaw) {
    // Echo replies only: a raw socket receives every ICMP packet. The filter's bits are the blocked types.
    const filter = isV6 ? Buffer.alloc(32, 0xff) : Buffer.alloc(4, 0xff);
    if (isV6) filter.writeUInt32LE(0xffff_fffd, 16);
    else filter.writeUInt32LE(0xffff_fffe, 0);
    c.setsockopt(fd, isV6 ? protocolIcmp6 : solRaw, isV6 ? icmp6Filter : icmpFilter, filter, filter.length);
  }
  return { fd, isRaw };
}

function echoRequest(isV6: boolean, sequence: number, token: Buffer): Buffer {
  const message = Buffer.concat([Buffer.from([isV6 ? 128 : 8, 0, 0, 0, 0, 0, 0, 0]), token]);
  message.writeUInt16BE(process.pid & 0xffff, 4);
  message.writeUInt16BE(sequence, 6);
  // Over IPv6 and over ping sockets the kernel sets the checksum.
  if (!isV6) message.writeUInt16BE(checksum(message), 2);
  return message;
}

/** Of a `timespec`. */
function readTimeNs(time: Buffer): bigint {
  return time.readBigInt64LE(0) * 1_000_000_000n + time.readBigInt64LE(8);
}

/** RFC 1071. */
function checksum(message: Buffer): number {
  let sum = 0;
  for (let i = 0; i < message.length; i += 2) sum += message.readUInt16BE(i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** `sockaddr_in` or `sockaddr_in6`. */
function socketAddress(address: string, isV6: boolean): Buffer {
  const bytes = parseAddress(address)!;
  const buffer = Buffer.alloc(isV6 ? 28 : 16);
  buffer.writeUInt16LE(isV6 ? afInet6 : afInet, 0);
  buffer.set(bytes, isV6 ? 8 : 4);
  return buffer;
}

function systemError(step: string, errno: number): Error {
  const code = errnoNames.get(errno) ?? `errno ${errno}`;
  return Object.assign(new Error(`could not ${step}: ${code}`), { code });
}
