/**
 * Traffic that fills the flow table: a few TLS connections a second beside many short UDP exchanges, in the order of
 * time, with the expected counters of a capture.
 */
import { seededRandom } from '#common/random/index.ts';
import {
  clientHello,
  dnsMessage,
  ethernet,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from '#sensor/testing/frames.ts';

/** Kinds of exchanges. `crowd` has more clients than a minute has rows. */
export const mixes = ['dns', 'resolver', 'ntp', 'quic', 'games', 'rpc', 'mixed', 'crowd'] as const;
export type Mix = (typeof mixes)[number];

export interface PressureOptions {
  seed: number;
  mix: Mix;
  /** Exchanges of one request and one answer per second. */
  rate: number;
  seconds: number;
  /** TLS connections per second. */
  tlsRate: number;
  /** Probes of closed ports per second; half of them are TCP with a reset as answer. */
  scanRate: number;
}

/** Expected rows: bytes by client, server, protocol, server port, and name for TLS. */
export interface PressureTruth {
  packets: number;
  bytes: number;
  /** Bytes of each local address. */
  local: Map<string, number>;
  tls: Map<string, number>;
  exchanges: Map<string, number>;
}

interface Event {
  frame: Uint8Array;
  row: string | null;
  isTls: boolean;
}

/** Few enough address pairs that a minute has a row for each, except for `crowd`. */
const pool = 600;
const locals = 200;
const askers = 80;
const localTexts = Array.from({ length: 256 }, (_, i) => `192.0.2.${i}`);
const resolvers = ['198.51.100.1', '198.51.100.2', '198.51.100.3', '203.0.113.53'];

/** Plays the traffic: `take` receives every frame with its time in milliseconds after the start. */
export function playPressure(
  options: PressureOptions,
  take: (frame: Uint8Array, ms: number) => void,
): PressureTruth {
  const source = new PressureSource(options);
  const truth: PressureTruth = {
    packets: 0,
    bytes: 0,
    local: new Map(),
    tls: new Map(),
    exchanges: new Map(),
  };
  const total = options.seconds * 1000;
  for (let ms = 0; ms < total; ms += 1) {
    source.begin(ms);
    for (const event of source.due(ms)) {
      noteTruth(truth, event);
      take(event.frame, ms);
    }
  }
  return truth;
}

function noteTruth(truth: PressureTruth, { frame, row, isTls }: Event): void {
  const bytes = (frame[16]! << 8) | frame[17]!;
  truth.packets += 1;
  truth.bytes += bytes;
  for (let at = 26; at <= 30; at += 4) {
    if (frame[at] !== 192 || frame[at + 1] !== 0 || frame[at + 2] !== 2) continue;
    const address = localTexts[frame[at + 3]!]!;
    truth.local.set(address, (truth.local.get(address) ?? 0) + bytes);
  }
  if (row === null) return;
  const rows = isTls ? truth.tls : truth.exchanges;
  rows.set(row, (rows.get(row) ?? 0) + bytes);
}

class PressureSource {
  readonly #options: PressureOptions;
  readonly #random: () => number;
  readonly #due: (Event[] | undefined)[] = [];
  #count = 0;
  #owed = { tls: 0, exchanges: 0, scans: 0 };

  constructor(options: PressureOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  /** Plans the exchanges and connections that begin in this millisecond. */
  begin(ms: number): void {
    const { tlsRate, rate, scanRate, seconds } = this.#options;
    // The last connections need time to send their name.
    const isEnding = ms >= (seconds - 1) * 1000;
    this.#owed.tls += isEnding ? 0 : tlsRate / 1000;
    this.#owed.exchanges += rate / 1000;
    this.#owed.scans += scanRate / 1000;
    for (; this.#owed.tls >= 1; this.#owed.tls -= 1) this.#beginTls(ms);
    while (this.#owed.exchanges >= 1) this.#owed.exchanges -= this.#beginExchange(ms);
    for (; this.#owed.scans >= 1; this.#owed.scans -= 1) this.#beginScan(ms);
  }

  due(ms: number): Event[] {
    const events = this.#due[ms] ?? [];
    this.#due[ms] = undefined;
    return events;
  }

  #plan(ms: number, frame: Uint8Array, row: string | null, isTls = false): void {
    const at = Math.floor(ms);
    if (this.#due[at]) this.#due[at].push({ frame, row, isTls });
    else this.#due[at] = [{ frame, row, isTls }];
  }

  #pick(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #local(): string {
    return `192.0.2.${1 + this.#pick(locals)}`;
  }

  #asker(): string {
    return `192.0.2.${1 + this.#pick(askers)}`;
  }

  #remote(i: number): string {
    return `203.${10 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
  }

  /** Between 5 and 150 ms, most of them short. */
  #roundTrip(): number {
    return 5 * 30 ** this.#random();
  }

  /** A handshake, a hello in one or two segments, data for up to twenty seconds; most connections are closed. */
  #beginTls(ms: number): void {
    this.#count += 1;
    const ends: SegmentOptions = {
      from: this.#local(),
      fromPort: 20_000 + this.#pick(40_000),
      to: `198.18.${this.#pick(250)}.${this.#pick(250)}`,
      toPort: 443,
    };
    const domain = `site-${this.#count}.example`;
    const row = `${ends.from} ${ends.to} 6 443 ${domain}`;
    const back = reverse(ends);
    const rtt = this.#roundTrip();
    const send = (at: number, packet: Uint8Array) => this.#plan(at, ethernet(packet), row, true);
    send(ms, tcp(ends, Tcp.syn, 1000));
    send(ms + rtt / 2, tcp(back, Tcp.syn | Tcp.ack, 5000));
    send(ms + rtt, tcp(ends, Tcp.ack, 1001));
    const hello = clientHello({ host: `www.${domain}`, before: this.#random() < 0.5 ? 40 : 1500 });
    for (let at = 0; at < hello.length; at += 1400) {
      send(ms + rtt + 1, tcp(ends, Tcp.ack | Tcp.push, 1001 + at, hello.subarray(at, at + 1400)));
    }
    const segments = 8 + this.#pick(30);
    const lasts = 200 + this.#random() ** 3 * 20_000;
    for (let i = 0; i < segments; i += 1) {
      const at = ms + rtt * 2 + (lasts * i) / segments;
      send(at, tcp(back, Tcp.ack, 5001 + i * 1400, new Uint8Array(1400)));
      send(at + rtt / 2, tcp(ends, Tcp.ack, 1001 + hello.length));
    }
    if (this.#random() < 0.1) return;
    const end = ms + rtt * 3 + lasts;
    send(end, tcp(ends, Tcp.fin | Tcp.ack, 1001 + hello.length));
    send(end + rtt / 2, tcp(back, Tcp.fin | Tcp.ack, 5001 + segments * 1400));
    send(end + rtt, tcp(ends, Tcp.ack, 1002 + hello.length));
  }

  /** Begins one exchange or a conversation. Returns the number of exchanges. */
  #beginExchange(ms: number): number {
    const { mix } = this.#options;
    const kind = mix === 'mixed' ? mixes[this.#pick(6)]! : mix;
    this.#count += 1;
    if (kind === 'quic') return this.#converse(ms, this.#quicEnds(), 12, 100 + this.#pick(3000), 700);
    if (kind === 'games') return this.#converse(ms, this.#gameEnds(), 40, 10_000, 120);
    const ends = this.#exchangeEnds(kind);
    const row = `${ends.from} ${ends.to} 17 ${ends.toPort}`;
    const id = this.#count & 0xffff;
    const name = `h${this.#count}.zone-${this.#pick(5000)}.example`;
    const isLookup = kind === 'dns' || kind === 'resolver';
    const address = `203.200.${this.#pick(250)}.${this.#pick(250)}`;
    const ask = isLookup ? dnsMessage({ id, name }) : new Uint8Array(48);
    const answers = [{ name, ttl: 300, address }];
    const tell = isLookup ? dnsMessage({ id, name, answers }) : new Uint8Array(48 + this.#pick(400));
    this.#plan(ms, ethernet(udp(ends, ask)), row);
    this.#plan(ms + this.#roundTrip(), ethernet(udp(reverse(ends), tell)), row);
    return 1;
  }

  #exchangeEnds(kind: Mix): SegmentOptions {
    const port = 1024 + this.#pick(60_000);
    if (kind === 'dns')
      return { from: this.#asker(), fromPort: port, to: resolvers[this.#count & 3]!, toPort: 53 };
    if (kind === 'resolver')
      return { from: '192.0.2.53', fromPort: port, to: this.#remote(this.#pick(pool)), toPort: 53 };
    if (kind === 'ntp' || kind === 'crowd') {
      const client = this.#remote(kind === 'crowd' ? this.#count : this.#pick(pool));
      return { from: client, fromPort: port, to: '192.0.2.123', toPort: 123 };
    }
    return { from: this.#asker(), fromPort: port, to: this.#remote(this.#pick(8)), toPort: 34_780 };
  }

  #quicEnds(): SegmentOptions {
    const fromPort = 20_000 + this.#pick(40_000);
    return { from: `192.0.2.${1 + this.#pick(8)}`, fromPort, to: this.#remote(this.#pick(60)), toPort: 443 };
  }

  #gameEnds(): SegmentOptions {
    return {
      from: this.#remote(this.#pick(pool)),
      fromPort: 30_000 + this.#pick(30_000),
      to: '192.0.2.77',
      toPort: 27_015,
    };
  }

  /** `packets` packets in alternating directions over `lasts` milliseconds. */
  #converse(ms: number, ends: SegmentOptions, packets: number, lasts: number, size: number): number {
    const row = `${ends.from} ${ends.to} 17 ${ends.toPort}`;
    for (let i = 0; i < packets; i += 1) {
      const frame = ethernet(udp(i % 2 === 0 ? ends : reverse(ends), new Uint8Array(size)));
      this.#plan(ms + (lasts * i) / packets, frame, row);
    }
    return packets / 2;
  }

  #beginScan(ms: number): void {
    const ends: SegmentOptions = {
      from: `192.88.${this.#pick(4)}.7`,
      fromPort: 40_000 + this.#pick(20_000),
      to: this.#local(),
      toPort: 1 + this.#pick(60_000),
    };
    if (this.#random() < 0.5) {
      this.#plan(ms, ethernet(udp(ends, new Uint8Array(8))), null);
      return;
    }
    this.#plan(ms, ethernet(tcp(ends, Tcp.syn, 1)), null);
    this.#plan(ms + 1, ethernet(tcp(reverse(ends), Tcp.reset | Tcp.ack, 0)), null);
  }
}
