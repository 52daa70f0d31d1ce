/**
 * Runs the counting program over frames without an interface (BPF_PROG_TEST_RUN).
 *
 * The kernel itself refuses some frames here that an interface would bring: shorter than an Ethernet header and a byte, longer than a
 * page less its head and tail, or with an IP header that is cut off right behind the Ethernet header.
 */
import koffi from 'koffi';
import { Kind, kindCount, Read, readLength } from '#sensor/attack-counters/index.ts';
import { Entry, kindShift, PacketBatch } from '#sensor/attack-counters/packet-batch.ts';
import {
  compileLocalScope,
  decodeFrame,
  deviceKeyText,
  formatWords,
  type LocalScope,
  type MinuteReport,
  Packet,
  Verdict,
} from '#sensor/capture/index.ts';
import type { KernelMinute } from '#sensor/kernel/index.ts';
import { KindReader } from '#sensor/kernel/kind-reader.ts';
import { libbpf, must } from '#sensor/kernel/libbpf.ts';
import { type LoadedCounter, loadCounter } from '#sensor/kernel/load-counter.ts';
import { testCapture, testMinute } from './captures.ts';
import { generatedSeeds, mutate } from './mutations.ts';

const frameBytesMin = 15;
const frameBytesMax = 3500;
const optionsBytes = 80;
/** `__sk_buff`, and the position of `gso_segs` in it. */
const contextBytes = 192;
const segmentsAt = 164;
const minuteNs = 60_000_000_000n;
/** The kernel's clock is a tick behind at most. */
const leadNs = 1_000_000_000n;

export interface OfferedFrame {
  bytes: Uint8Array;
  /** Packets that offload merged into it; 1 by default. */
  segments?: number;
}

/** True for frames that the kernel takes here. */
export function canRun(bytes: Uint8Array): boolean {
  if (bytes.length < frameBytesMin || bytes.length > frameBytesMax) return false;
  const type = (bytes[12]! << 8) | bytes[13]!;
  const headerBytes = type === 0x0800 ? 20 : type === 0x86dd ? 40 : 0;
  return bytes.length >= 14 + headerBytes;
}

export class KernelRuns {
  readonly #loaded: LoadedCounter;
  readonly #bpf = libbpf();
  readonly #data = koffi.alloc('uint8_t', 65_536);
  readonly #context = koffi.alloc('uint8_t', contextBytes);
  readonly #options = koffi.alloc('uint8_t', optionsBytes);
  readonly #dataBytes = new Uint8Array(koffi.view(this.#data, 65_536));
  readonly #contextView = new DataView(koffi.view(this.#context, contextBytes));
  readonly #optionsView = new DataView(koffi.view(this.#options, optionsBytes));
  /** The minute that is open in the kernel, seconds since 1970. */
  minute = 0;

  /** `file`: another object than the one of this project. */
  constructor(isEthernet: boolean, file?: string) {
    this.#loaded = loadCounter(null, isEthernet, file);
    for (const { buffer } of [this.#optionsView, this.#contextView]) new Uint8Array(buffer).fill(0);
    const options = this.#optionsView;
    options.setBigUint64(0, BigInt(optionsBytes), true);
    options.setBigUint64(8, koffi.address(this.#data), true);
    options.setBigUint64(32, koffi.address(this.#context), true);
    options.setUint32(48, contextBytes, true);
    options.setUint32(60, 1, true);
    this.open(0);
  }

  get counter(): LoadedCounter['counter'] {
    return this.#loaded.counter;
  }

  /** Addresses that have room. */
  get hostsMax(): number {
    return this.#loaded.hostsMax;
  }

  setLocal(local: LocalScope, isBridge: boolean): void {
    this.#loaded.counter.setLocal(local, isBridge);
  }

  /** Opens the minute with this number. */
  open(number: number): void {
    this.minute = number * 60;
    this.#loaded.counter.beat(BigInt(number) * minuteNs + leadNs - process.hrtime.bigint());
  }

  /** Counts a frame. */
  run({ bytes, segments = 1 }: OfferedFrame): void {
    this.#dataBytes.set(bytes);
    this.#optionsView.setUint32(24, bytes.length, true);
    // The call before has left the sizes of its answers.
    this.#optionsView.setUint32(28, 0, true);
    this.#optionsView.setUint32(52, 0, true);
    this.#contextView.setUint32(segmentsAt, segments === 1 ? 0 : segments, true);
    must(this.#bpf.testRun(this.#loaded.programFd, this.#options), 'run the counting program');
  }

  read(): KernelMinute {
    return this.#loaded.counter.readMinute(this.minute);
  }

  close(): void {
    this.#loaded.unload();
    for (const room of [this.#data, this.#context, this.#options]) koffi.free(room);
  }
}

/** Addresses of the frames that the comparison makes; the first has an owner, and frames come from another MAC too. */
const local: LocalScope = {
  prefixes: ['192.0.2.0/24', '2001:db8::/32'],
  addresses: ['203.0.113.9'],
  owners: [
    { address: '192.0.2.1', macs: ['02:00:00:00:00:01', '02:00:00:00:00:02'] },
    { address: '2001:db8::1', macs: ['02:00:00:00:00:03'] },
  ],
};

/** Counts frames in the kernel and in the engine, each batch in a minute of its own, and says where they differ. */
export class KernelComparison {
  readonly #runs: KernelRuns;
  readonly #linkType: number;
  readonly #kinds: KindReader;
  #number = 100;

  /** `linkType`: 1 for Ethernet, 101 for IP without a link header. */
  constructor(linkType: 1 | 101, file?: string) {
    this.#linkType = linkType;
    this.#runs = new KernelRuns(linkType === 1, file);
    this.#runs.counter.setLocal(local, true, { prefixes: [] });
    this.#kinds = new KindReader(this.#runs.counter);
    this.#kinds.read();
  }

  /** The first frame that the two count differently, with both counts; null when they agree on all. */
  findDifference(frames: readonly OfferedFrame[]): string | null {
    const whole = this.#compare(frames);
    if (whole === null) return null;
    if (frames.length === 1) return `${Buffer.from(frames[0]!.bytes).toString('hex')}\n${whole}`;
    const half = frames.length >> 1;
    return this.findDifference(frames.slice(0, half)) ?? this.findDifference(frames.slice(half)) ?? whole;
  }

  close(): void {
    this.#runs.close();
  }

  #compare(frames: readonly OfferedFrame[]): string | null {
    this.#runs.open(++this.#number);
    const capture = testCapture({ role: 'bridge', linkType: this.#linkType, local });
    for (const frame of frames) {
      const { bytes, segments = 1 } = frame;
      this.#runs.run(frame);
      capture.observe(bytes, 0, bytes.length, bytes.length, testMinute, 0, -1, segments);
    }
    const kinds = kindsOf(frames, this.#linkType);
    const engine = `${describeReport(capture.closeAll(testMinute * 1000 + 1)[0]!)}; ${kinds}`;
    const kernel = `${describeKernel(this.#runs.read())}; ${describeKinds(this.#kinds)}`;
    return engine === kernel ? null : `engine ${engine}\nkernel ${kernel}`;
  }
}

function describeReport({ totals, hosts, spoofed }: MinuteReport): string {
  const { packets, ipPackets, ipBytes, nonIpPackets, parserDropped } = totals;
  const rows = hosts.filter(({ isLocal }) => isLocal).map((host) => [host.address, host] as const);
  const servers = new Set(local.owners!.flatMap(({ macs }) => macs));
  const ofServers = spoofed.filter(({ deviceKey }) =>
    servers.has(deviceKey.slice(deviceKey.indexOf('|') + 1)),
  );
  return `${describe([packets, ipPackets, ipBytes, nonIpPackets, parserDropped], rows)}; ${describeSpoofed(ofServers)}`;
}

function describeKernel({ totals, hosts, spoofed }: KernelMinute): string {
  const { packets, ipPackets, ipBytes, nonIpPackets, parserDropped } = totals;
  // The engine does not know the other claims, nor sources of no network here.
  const ofServers = spoofed
    .filter(({ reason, address }) => reason === 'address' && address !== '')
    .map((row) => ({ ...row, deviceKey: deviceKeyText('br0', row.high, row.low) }));
  return `${describe([packets, ipPackets, ipBytes, nonIpPackets, parserDropped], [...hosts])}; ${describeSpoofed(ofServers)}`;
}

const describeSpoofed = (
  rows: readonly { deviceKey: string; address: string; bytes: number; packets: number }[],
) =>
  rows
    .map(({ deviceKey, address, bytes, packets }) => [deviceKey, address, bytes, packets].join(' '))
    .sort()
    .join(', ');

function describe(
  totals: readonly number[],
  hosts: readonly (readonly [string, { rxBytes: number; txBytes: number; packets: number }])[],
): string {
  const rows = hosts.map(([address, { rxBytes, txBytes, packets }]) =>
    [address, rxBytes, txBytes, packets].join(' '),
  );
  return `${totals.join(' ')}; ${rows.sort().join(', ')}`;
}

/** By address, direction and kind: packets; by address and direction: bytes of all, of reflections, of other datagrams. */
type KindSums = Map<string, number>;

const describeSums = (sums: KindSums) =>
  [...sums]
    .filter(([, sum]) => sum > 0)
    .map((pair) => pair.join(' '))
    .sort()
    .join(', ');

/** What the detector's counters make of the frames, without what they know of flows. */
function kindsOf(frames: readonly OfferedFrame[], linkType: number): string {
  const sums: KindSums = new Map();
  const ranges = compileLocalScope(local);
  const packet = new Packet();
  const batch = new PacketBatch();
  for (const { bytes, segments = 1 } of frames) {
    packet.attach(bytes);
    packet.end = packet.wireEnd = bytes.length;
    if (decodeFrame(packet, linkType, 0) !== Verdict.ip) continue;
    batch.count = 0;
    batch.addPacket(packet, segments, 0, 0, 0);
    const kind = (batch.words[Entry.meta]! >> kindShift) & 15;
    const ends = batch.readEnds(0, new Int32Array(8));
    const sides = ranges.sides(packet.version, ends, 0);
    for (const [side, direction] of [
      [0, 'out'],
      [1, 'in'],
    ] as const) {
      const words = ends.subarray(side * 4, side * 4 + 4);
      const address = formatWords(packet.version, words[0]!, words[1]!, words[2]!, words[3]!);
      if (((sides >> side) & 1) === 0 || (side === 0 && isMadeUp(address, packet))) continue;
      addKind(sums, `${address} ${direction}`, kind, segments, packet.ipLength);
    }
  }
  return describeSums(sums);
}

function addKind(sums: KindSums, end: string, kind: number, packets: number, bytes: number): void {
  const add = (what: string, more: number) =>
    sums.set(`${end} ${what}`, (sums.get(`${end} ${what}`) ?? 0) + more);
  add(String(kind), packets);
  add('bytes', bytes);
  if (kind === Kind.reflection) add('reflected', bytes);
  if (kind === Kind.datagram) add('datagrams', bytes);
}

/** True when the source has owners, none of which sent the packet. */
function isMadeUp(address: string, { macAt, bytes }: Packet): boolean {
  const owner = local.owners!.find((one) => one.address === address);
  if (!owner || macAt < 0) return false;
  const mac = Array.from(bytes.subarray(macAt, macAt + 6), (byte) => byte.toString(16).padStart(2, '0'));
  return !owner.macs.includes(mac.join(':'));
}

function describeKinds(reader: KindReader): string {
  const { count, slots, numbers } = reader.read();
  const sums: KindSums = new Map();
  for (let i = 0; i < count; i += 1) {
    const address = formatWords(...reader.addressOf(slots[i]!));
    for (const [direction, name] of ['in', 'out'].entries()) {
      const at = (i * 2 + direction) * readLength;
      for (let kind = 0; kind < kindCount; kind += 1)
        sums.set(`${address} ${name} ${kind}`, numbers[at + kind]!);
      sums.set(`${address} ${name} bytes`, numbers[at + Read.bytes]!);
      sums.set(`${address} ${name} reflected`, numbers[at + Read.reflectedBytes]!);
      sums.set(`${address} ${name} datagrams`, numbers[at + Read.datagramBytes]!);
    }
  }
  return describeSums(sums);
}

/** A whole Ethernet frame with one thing changed that breaking it at random seldom hits. */
function vary(frame: Uint8Array, random: () => number): Uint8Array {
  const bytes = frame.slice(0, Math.ceil(frame.length * Math.min(1, random() * 4)));
  const isIpv4 = bytes[12] === 8 && bytes[13] === 0;
  const [lengthAt, sourceAt, size] = isIpv4 ? [16, 26, 4] : [18, 22, 16];
  if (bytes.length < sourceAt + 2 * size) return bytes;
  // Among the senders are those who own its source address, and others.
  bytes[11] = Math.floor(random() * 5);
  const change = random();
  // Left to offload.
  if (change < 0.3) bytes.fill(0, lengthAt, lengthAt + 2);
  // To itself.
  else if (change < 0.5) bytes.copyWithin(sourceAt + size, sourceAt, sourceAt + size);
  else if (change < 0.7) bytes.copyWithin(sourceAt, sourceAt + size, sourceAt + 2 * size);
  // Ends within its headers.
  else if (change < 0.8) bytes.set([0, Math.floor(random() * 64)], lengthAt);
  return bytes;
}

/** Frames of every encapsulation, most of them broken, some merged from several packets; those that the kernel takes here. */
export function* frameBatches(options: {
  linkType: 1 | 101;
  count: number;
  random: () => number;
}): Generator<OfferedFrame[]> {
  const { linkType, count, random } = options;
  const seeds = generatedSeeds().filter((seed) => seed.linkType === linkType);
  const batchFrames = 500;
  for (let made = 0; made < count; made += batchFrames) {
    const frames: OfferedFrame[] = [];
    while (frames.length < batchFrames) {
      const isWhole = random() < 0.3;
      const seed = isWhole ? seeds[Math.floor(random() * seeds.length)]! : mutate(seeds, random);
      const bytes = isWhole && linkType === 1 ? vary(seed.bytes, random) : seed.bytes;
      const segments = random() < 0.05 ? 2 + Math.floor(random() * 43) : 1;
      if (canRun(bytes)) frames.push({ bytes, segments });
    }
    yield frames;
  }
}
