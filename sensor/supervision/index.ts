/**
 * Reports to the service manager that the sensor is ready, alive, or stopping.
 *
 * systemd's protocol: datagrams to the socket in `NOTIFY_SOCKET`. Node.js has no Unix datagram sockets, so the C
 * library sends them. Without a service manager, or after an error, nothing is sent.
 */
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

const afUnix = 1;
const sockDatagram = 2;
const sockCloexec = 0o2000000;
const dontWait = 0x40;
const noSignal = 0x4000;
const pingEveryMs = 10_000;

export interface SupervisionOptions {
  /** Path of the socket; a leading `@` means an abstract socket. Null without a service manager. */
  notifySocket: string | null;
  /** The service manager ends a service that is silent for this long; null without a watchdog. */
  watchdogMs: number | null;
  reporter: Reporter;
}

/** Creates the part. It is the first part, so that it starts first and stops last. */
export function createSupervision(options: SupervisionOptions) {
  const { notifySocket, watchdogMs, reporter } = options;
  let send: (text: string) => void = () => {};
  let timer: NodeJS.Timeout | null = null;
  return {
    name: 'supervision',
    async start() {
      if (!notifySocket) return;
      try {
        send = await openSocket(notifySocket);
      } catch (error) {
        reporter.warn('the service manager can not be notified', { why: describeError(error) });
      }
      // At least at half of the time, as the protocol advises. A blocked main thread sends nothing and is restarted; one that
      // stands still for less than the limit must not be, whenever it sent last.
      if (watchdogMs) timer = setInterval(() => send('WATCHDOG=1'), Math.min(pingEveryMs, watchdogMs / 2));
    },
    async stop() {
      if (timer) clearInterval(timer);
    },
    /** Reports that everything has started. */
    ready() {
      send('READY=1');
      process.once('SIGTERM', () => send('STOPPING=1'));
    },
  };
}

async function openSocket(path: string): Promise<(text: string) => void> {
  const { default: koffi } = await import('koffi');
  const c = koffi.load(null);
  const socket = c.func('int socket(int domain, int type, int protocol)');
  const sendto = c.func(
    'int64_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
  );
  const fd: number = socket(afUnix, sockDatagram | sockCloexec, 0);
  if (fd < 0) throw new Error(`no socket: errno ${koffi.errno()}`);
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`);
  const address = Buffer.concat([Buffer.alloc(2), name]);
  address.writeUInt16LE(afUnix, 0);
  return (text) => {
    const bytes = Buffer.from(text);
    sendto(fd, bytes, bytes.length, dontWait | noSignal, address, address.length);
  };
}
