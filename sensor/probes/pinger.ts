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
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { AttemptOutcome } from './attempts.ts';
import { type IcmpSocket, loadIcmpLibrary, openIcmpSocket, tokenBytes } from './icmp-socket.ts';

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
