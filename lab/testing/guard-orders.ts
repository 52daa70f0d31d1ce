/**
 * A guest that forges without a pause while its addresses come and go: behind its guard there is no forged frame, none of an address that
 * was released, and every ordinary one of an address that is attached.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAddress } from '#common/ip/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { captureLink } from './capture-link.ts';
import { type Interface, markedIn, markFrames, type TestFrame, testFrames } from './forged-frames.ts';
import { patientMs, type Scope } from './lab-tests.ts';

export interface GuardedPort {
  mac: string;
  neighbour: Interface;
  /** Resolves when the guest may send from these alone. */
  setAddresses(addresses: readonly string[]): Promise<void>;
  setGuard(isOn: boolean): Promise<void>;
  /** How to run a program in the guest and in its neighbour. */
  inGuest(argv: readonly string[]): readonly string[];
  inNeighbour(argv: readonly string[]): readonly string[];
  /** Their NICs. */
  device: string;
  /** For captures. */
  folder: string;
}

const sendOnDemandFile = fileURLToPath(new URL('./send-on-demand.ts', import.meta.url));
const [first, second] = [31, 32].map((last) => ({
  ipv4: `203.0.113.${last}`,
  ipv6: `2001:db8:113::${last}`,
})) as [{ ipv4: string; ipv6: string }, { ipv4: string; ipv6: string }];
const addresses = [first.ipv4, first.ipv6, second.ipv4, second.ipv6] as const;

/** What the guest has after each change, one order of attach and release after another. */
export const guardOrders: readonly (readonly (readonly string[])[])[] = [
  // Attach, then release the first.
  [[first.ipv4, first.ipv6], addresses, [second.ipv4, second.ipv6]],
  // Both at once, and back.
  [
    [first.ipv4, first.ipv6],
    [second.ipv4, second.ipv6],
    [first.ipv4, first.ipv6],
  ],
  // One family after the other.
  [
    [first.ipv4, first.ipv6],
    [second.ipv4, first.ipv6],
    [second.ipv4, second.ipv6],
  ],
  // Released, attached again, released.
  [[second.ipv4], addresses, [first.ipv4, first.ipv6], addresses, [second.ipv6]],
  // One family alone.
  [[first.ipv4], [first.ipv4, second.ipv4], [second.ipv6], [second.ipv6, first.ipv6], [first.ipv6]],
];

/** An order of four changes that are drawn. */
export function drawOrder(random: () => number): string[][] {
  return Array.from({ length: 4 }, () => {
    const drawn = addresses.filter(() => random() < 0.5);
    return drawn.length > 0 ? drawn : [addresses[Math.floor(random() * addresses.length)]!];
  });
}

const holds = (frame: TestFrame, address: string) =>
  Buffer.from(frame.bytes).includes(Buffer.from(parseAddress(address)!));

interface JudgedFrame extends TestFrame {
  mustPass: boolean;
}

/** What the guest sends while it has these addresses, and whether each frame may leave. */
function framesOf({ mac, neighbour }: GuardedPort, owned: readonly string[]): JudgedFrame[] {
  const released = addresses.filter((address) => !owned.includes(address));
  const pairs = [
    [first, neighbour],
    [second, neighbour],
    [first, { ...second, mac: neighbour.mac }],
    [second, { ...first, mac: neighbour.mac }],
  ] as const;
  return pairs.flatMap(([own, other]) =>
    testFrames({ ...own, mac }, other).flatMap((frame) => {
      if (frame.reason === null)
        return [{ ...frame, mustPass: !released.some((one) => holdsOwn(frame, own, one)) }];
      // From an address of the other one that this guest has as well, it is not forged.
      return owned.some((one) => one in { [other.ipv4]: 1, [other.ipv6]: 1 } && holds(frame, one))
        ? []
        : [{ ...frame, mustPass: false }];
    }),
  );
}

/** Whether the guest sends it as the one who has this address. */
const holdsOwn = (frame: TestFrame, own: { ipv4: string; ipv6: string }, address: string) =>
  (address === own.ipv4 || address === own.ipv6) && holds(frame, address);

/** Runs one order; resolves with the number of frames that were judged, and what was wrong. */
export async function runGuardOrder(
  port: GuardedPort,
  order: readonly (readonly string[])[],
): Promise<{ judged: number; kinds: number; faults: string[] }> {
  const ends: (() => unknown)[] = [];
  const scope: Scope = { after: (end) => ends.push(end) };
  try {
    return await judgeOrder(scope, port, order);
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

async function judgeOrder(scope: Scope, port: GuardedPort, order: readonly (readonly string[])[]) {
  const at = (name: string) => join(port.folder, `guard-order.${name}`);
  const write = (name: string, frames: readonly TestFrame[]) => {
    writeFileSync(at(name), frames.map(({ bytes }) => Buffer.from(bytes).toString('hex')).join('\n'));
    return at(name);
  };
  const mark = (frames: readonly TestFrame[]) => {
    const needle = randomBytes(12).toString('hex');
    const marked = markFrames(frames, needle);
    return { marked, passed: () => markedIn(at('pcap'), marked, needle) };
  };
  await port.setAddresses(order[0]!);
  await captureLink(scope, {
    prefix: port.inNeighbour([]),
    interfaceName: port.device,
    file: at('pcap'),
    filter: 'greater 0',
    isInbound: true,
  });
  // In each moment of the order these are forged.
  const never = mark(
    testFrames({ ...first, mac: port.mac }, port.neighbour).filter(({ reason }) => reason !== null),
  );
  const [program, ...args] = port.inGuest([
    ...['taskset', '-c', '0', process.execPath],
    ...[sendOnDemandFile, port.device, write('always', never.marked)],
  ]);
  const sender = spawn(program!, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  scope.after(() => sender.kill('SIGKILL'));
  const faults: string[] = [];
  let judged = 0;
  for (const [step, owned] of order.entries()) {
    if (step > 0) await port.setAddresses(owned);
    const frames = framesOf(port, owned);
    // Its link-local address may always send, so this one says that all before it have been judged.
    const last = frames.findLast(({ kind }) => kind === 'an advertisement of its link-local address')!;
    const { marked, passed } = mark([...frames, last]);
    sender.stdin.write(`${write('step', marked)}\n`);
    await once(sender.stdout, 'data');
    const seen = await until('the last frame arrives', patientMs, () => {
      const list = passed();
      return list.includes(marked.at(-1)!) ? new Set(list) : null;
    });
    judged += frames.length;
    for (const [i, { kind, mustPass }] of frames.entries())
      if (seen.has(marked[i]!) !== mustPass)
        faults.push(`with ${owned.join(' and ')}: ${kind} ${mustPass ? 'does not pass' : 'passes'}`);
  }
  for (const { kind } of never.passed()) faults.push(`during ${JSON.stringify(order)}: ${kind} passes`);
  return { judged, kinds: new Set(never.marked.map(({ kind }) => kind)).size, faults };
}
