/**
 * One session with a BGP peer: it announces exactly the routes that it is given, and takes none.
 *
 * The peer keeps the routes only while the session lives: it ends when this process dies, when it does not answer for the
 * hold time, or when `trustUntil` has passed, which the lease of the speaker sets. It is closed without a NOTIFICATION, so
 * that the peer keeps the routes for the time of graceful restart, and a successor takes them over without a gap.
 */
import { createConnection, isIPv4, type Socket } from 'node:net';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import * as messages from './messages.ts';
import type { BgpPeer } from './peer.ts';
import { families, type Route } from './route.ts';

export interface SessionOptions {
  peer: BgpPeer;
  /** Null: the peer's. */
  ownAs: number | null;
  keepSeconds: number;
  clock: Clock;
  reporter: Reporter;
}

export type Session = ReturnType<typeof createSession>;

const closed = 'the session was closed';
const holdSeconds = 30;
const connectMs = 5_000;
const retryMs = 3_000;
const tickMs = 1_000;
/** Of the peer's OPEN, after which the session is given up. */
const openMs = 10_000;

/**
 * Over 120 lines: its parts share the state of one connection, which changes under all of them when it ends.
 */
export function createSession(options: SessionOptions) {
  const { peer, clock, reporter } = options;
  const ownAs = options.ownAs ?? peer.as;
  let socket: Socket | null = null;
  let isEstablished = false;
  /** The peer has been told all routes of this session: what it kept from before is replaced. */
  let hasSynced = false;
  let problem = 'the session has not been opened yet';
  let lastLogged = '';
  let said: messages.PeerOpen | null = null;
  let rest: Buffer = Buffer.alloc(0);
  let lastTriedMs = Number.NEGATIVE_INFINITY;
  let heardMs = 0;
  let sentMs = 0;
  let deadlineMs = Number.NEGATIVE_INFINITY;
  let changed = Promise.withResolvers<void>();
  /** What the peer has been told in this session. */
  const announced = new Map<string, Route>();

  function end(why: string): void {
    if (!socket) return;
    const wasEstablished = isEstablished;
    socket.destroy();
    socket = null;
    [isEstablished, hasSynced, problem, said, rest] = [false, false, why, null, Buffer.alloc(0)];
    announced.clear();
    // The same failure every few seconds is one fact.
    if (wasEstablished || why !== lastLogged) reporter.warn('no BGP session', { peer: peer.name, why });
    lastLogged = why;
    changed.resolve();
  }

  function send(bytes: Buffer): void {
    sentMs = clock.monotonicMs();
    socket?.write(bytes);
  }

  function onMessage({ type, body }: messages.Message): void {
    heardMs = clock.monotonicMs();
    if (type === messages.messageTypes.notification) end(messages.describeNotification(body));
    else if (type === messages.messageTypes.open) onOpen(messages.decodeOpen(body));
    else if (type === messages.messageTypes.keepalive && said && !isEstablished) {
      isEstablished = true;
      lastLogged = '';
      reporter.info('a BGP session is established', { peer: peer.name });
      changed.resolve();
    }
  }

  function onOpen(open: messages.PeerOpen): void {
    said = open;
    if (open.as !== peer.as) end(`the peer's AS number is ${open.as}, not ${peer.as}`);
    else if (!open.hasAs4) end('the peer does not support AS numbers of four bytes');
    else send(messages.encodeKeepalive());
  }

  /** The smaller hold time of both ends counts; 0 is none. */
  const holdMs = () => Math.min(holdSeconds, said?.holdSeconds || holdSeconds) * 1000;

  async function watch(own: Socket): Promise<void> {
    const openedMs = clock.monotonicMs();
    while (socket === own) {
      await clock.wait(tickMs);
      if (socket !== own) return;
      const nowMs = clock.monotonicMs();
      if (nowMs >= deadlineMs) return end('this process may not announce any more');
      if (!isEstablished && nowMs - openedMs > openMs) return end('the peer did not answer');
      if (isEstablished && nowMs - heardMs > holdMs()) return end('nothing was heard from the peer');
      if (isEstablished && nowMs - sentMs >= holdMs() / 3) send(messages.encodeKeepalive());
    }
  }

  /** Connects unless it is connected, or was a moment ago. */
  function connect(): void {
    const nowMs = clock.monotonicMs();
    if (socket || nowMs - lastTriedMs < retryMs) return;
    lastTriedMs = nowMs;
    changed = Promise.withResolvers();
    const own = createConnection({ host: peer.host, port: peer.port, timeout: connectMs });
    socket = own;
    own.setNoDelay(true);
    own.once('timeout', () => socket === own && !said && end('the peer does not accept connections'));
    own.once('connect', () => {
      if (socket !== own) return;
      own.setTimeout(0);
      const routerId = routerIdOf(own.localAddress ?? '');
      const { keepSeconds } = options;
      send(messages.encodeOpen({ as: ownAs, holdSeconds, routerId, keepSeconds }));
    });
    own.on('data', (piece) => {
      if (socket !== own) return;
      try {
        const split = messages.splitMessages(Buffer.concat([rest, piece as Buffer]));
        rest = split.rest;
        for (const message of split.messages) if (socket === own) onMessage(message);
      } catch (error) {
        end(describeError(error));
      }
    });
    own.on('error', (error) => socket === own && end(`no connection with the peer: ${error.message}`));
    own.on('close', () => socket === own && end('the peer closed the connection'));
    void watch(own);
  }

  /** Waits until all that was sent is with the kernel. */
  const flushed = () =>
    new Promise<void>((resolve) => (socket ? socket.write(Buffer.alloc(0), () => resolve()) : resolve()));

  /** Announces these routes and withdraws all others. Returns why a route can not be announced. */
  async function sync(routes: readonly Route[]): Promise<string | null> {
    if (!isEstablished || !said) return problem;
    const wanted = new Map(routes.map((route) => [route.key, route]));
    let refused: string | null = null;
    for (const [key, route] of announced)
      if (!wanted.has(key)) {
        send(messages.encodeWithdrawal(route));
        announced.delete(key);
      }
    for (const [key, route] of wanted) {
      const { afi, safi, name } = route.family;
      if (!said.families.has(`${afi}/${safi}`)) refused = `the peer takes no routes of ${name}`;
      else if (!isSame(announced.get(key), route)) {
        send(messages.encodeAnnouncement(route, { own: ownAs, peer: peer.as }));
        announced.set(key, route);
      }
    }
    if (!hasSynced)
      for (const family of families)
        if (said.families.has(`${family.afi}/${family.safi}`)) send(messages.encodeEndOfRib(family));
    hasSynced = true;
    await flushed();
    return isEstablished ? refused : problem;
  }

  return {
    connect,
    sync,
    /** Null: established; else why not. */
    get problem(): string | null {
      return isEstablished ? null : problem;
    },
    /** Resolves when it is established, has failed, or after some seconds. */
    async settled() {
      const waiting = new AbortController();
      await Promise.race([changed.promise, clock.wait(connectMs, waiting.signal)]);
      waiting.abort();
    },
    /** Ends the session when this monotonic time passes. */
    trustUntil(ms: number) {
      deadlineMs = ms;
    },
    close() {
      lastLogged = closed;
      isEstablished = false;
      end(closed);
    },
  };
}

/** The same next hop: the rest follows from the key. */
function isSame(before: Route | undefined, after: Route): boolean {
  if (!before) return false;
  return Buffer.compare(before.nextHop ?? Buffer.alloc(0), after.nextHop ?? Buffer.alloc(0)) === 0;
}

/** The IPv4 address of this end; of an IPv6 one its last four bytes. Never 0. */
function routerIdOf(address: string): Buffer {
  const bytes = parseAddress(isIPv4(address) ? address : address.replace(/%.*$/, ''));
  const id = Buffer.from(bytes?.slice(-4) ?? []);
  return id.length === 4 && id.some((byte) => byte !== 0) ? id : Buffer.from([127, 0, 0, 1]);
}
