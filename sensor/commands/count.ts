/**
 * `./svc sensor count`: counts an interface for some seconds, in the kernel where it can, and prints the totals by address and
 * direction.
 *
 * It needs no enrolment and no running sensor, and has counters of its own beside those of one.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { CodedError, describeError } from '#common/errors/index.ts';
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { createCapture, type LocalScope } from '#sensor/capture/index.ts';
import { loadKernel } from '#sensor/kernel/index.ts';
import { openSource } from '#sensor/packet-source/index.ts';

const minuteMs = 60_000;
/** Its minutes begin so much before what is counted: the kernel's clock is a tick behind. */
const leadMs = 100;
const ringMiB = 64;
const pollMs = 100;

export interface CountOptions {
  interface: string;
  local: string[];
  seconds: number;
  json?: boolean;
}

interface HostRow {
  address: string;
  rxBytes: number;
  txBytes: number;
  packets: number;
}

const totalNames = [
  'packets',
  'ipPackets',
  'ipBytes',
  'nonIpPackets',
  'parserDropped',
  'kernelDropped',
] as const;

interface Counted {
  method: 'kernel' | 'ring' | 'tcpdump';
  /** Why the kernel does not count; null where it does. */
  why: string | null;
  totals: Record<(typeof totalNames)[number], number>;
  hosts: HostRow[];
}

/** Prints what was counted. Resolves with the exit code. */
export async function count(options: CountOptions): Promise<number> {
  const { interface: name, seconds } = options;
  if (!(Number.isInteger(seconds) && seconds > 0 && seconds <= 86_400))
    throw new CodedError('config.invalid', '--seconds takes a whole number of seconds up to 86400.');
  const prefixes = options.local.map((text) => {
    const prefix = parsePrefix(text);
    if (!prefix)
      throw new CodedError('config.invalid', `--local ${text} is not a prefix such as 192.0.2.0/24.`);
    return formatPrefix(prefix);
  });
  const local = { prefixes: prefixes.length > 0 ? prefixes : ['0.0.0.0/0', '::/0'], addresses: [] };
  const counted = await countByKernel(name, local, seconds).catch((error: unknown) =>
    countByFrames(name, local, seconds, describeError(error)),
  );
  counted.hosts.sort((a, b) => b.rxBytes + b.txBytes - a.rxBytes - a.txBytes);
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ interface: name, seconds, ...counted })}\n`
      : render(name, seconds, counted),
  );
  return 0;
}

/** Throws what is missing before anything was counted. */
async function countByKernel(name: string, local: LocalScope, seconds: number): Promise<Counted> {
  const kernel = await loadKernel();
  // It has minutes of its own.
  const firstMinute = Math.floor(Date.now() / minuteMs);
  const { counter, end } = kernel.countBriefly(name, (made) => {
    made.setLocal(local, false);
    made.beat(BigInt(firstMinute * minuteMs + leadMs) * 1_000_000n - process.hrtime.bigint());
  });
  const startedMs = performance.now();
  const counted = emptyCount('kernel', null);
  try {
    const endMs = seconds * 1000;
    const lastMinute = Math.floor((endMs + leadMs) / minuteMs);
    for (let minute = 0; minute <= lastMinute; minute += 1) {
      const untilMs = minute < lastMinute ? (minute + 1) * minuteMs : endMs;
      await wait(startedMs + untilMs - performance.now());
      if (minute === lastMinute) end();
      const { totals, hosts } = counter.readMinute((firstMinute + minute) * 60);
      addTo(
        counted,
        { ...totals, kernelDropped: 0 },
        [...hosts].map(([address, row]) => ({ address, ...row })),
      );
    }
  } finally {
    end();
    counter.close();
  }
  return counted;
}

/** The same by looking at every frame. */
async function countByFrames(
  interfaceName: string,
  local: LocalScope,
  seconds: number,
  why: string,
): Promise<Counted> {
  const { source } = await openSource({ kind: 'live', interfaceName, ringMiB });
  const counted = emptyCount(source.method === 'ring' ? 'ring' : 'tcpdump', why);
  const { linkType } = source;
  const capture = createCapture({
    name: interfaceName,
    role: 'uplink',
    linkType,
    local,
    registrableDomain: () => null,
  });
  const observe = capture.observe.bind(capture);
  const untilMs = performance.now() + seconds * 1000;
  try {
    while (performance.now() < untilMs) {
      await source.poll(Math.max(1, Math.min(pollMs, untilMs - performance.now())), observe);
      capture.addKernelDropped(source.takeDropped());
      for (const { totals, hosts } of capture.closeMinutes(Date.now())) addTo(counted, totals, hosts);
    }
  } finally {
    source.close();
  }
  for (const { totals, hosts } of capture.closeAll(Date.now())) addTo(counted, totals, hosts);
  return counted;
}

function emptyCount(method: Counted['method'], why: string | null): Counted {
  const totals = Object.fromEntries(totalNames.map((total) => [total, 0])) as Counted['totals'];
  return { method, why, totals, hosts: [] };
}

function addTo(counted: Counted, totals: Counted['totals'], hosts: readonly HostRow[]): void {
  for (const total of totalNames) counted.totals[total] += totals[total];
  const rows = new Map(counted.hosts.map((row) => [row.address, row]));
  for (const { address, rxBytes, txBytes, packets } of hosts) {
    const row = rows.get(address);
    rows.set(address, {
      address,
      rxBytes: rxBytes + (row?.rxBytes ?? 0),
      txBytes: txBytes + (row?.txBytes ?? 0),
      packets: packets + (row?.packets ?? 0),
    });
  }
  counted.hosts = [...rows.values()];
}

function render(name: string, seconds: number, { method, why, totals, hosts }: Counted): string {
  const how = method === 'kernel' ? 'in the kernel' : `by ${method}: ${why}`;
  const number = (value: number) => value.toLocaleString('en-US').padStart(20);
  const lines = [
    `${name}, ${seconds} s, counted ${how}`,
    ...totalNames.map((total) => `  ${total.padEnd(14)}${number(totals[total])}`),
    `${'address'.padEnd(40)}${['received', 'sent', 'packets'].map((text) => text.padStart(20)).join('')}`,
    ...hosts.map(
      (row) => `${row.address.padEnd(40)}${number(row.rxBytes)}${number(row.txBytes)}${number(row.packets)}`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}
