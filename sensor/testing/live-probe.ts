/**
 * Runs in a network namespace with the veth pair `va` and `vb`, uses the live ring, and prints JSON.
 *
 * usage: live-probe.ts count|overflow|gone|collect
 */
import { execFileSync } from 'node:child_process';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { createCollection, createUnkeptMinutes } from '#sensor/collection/index.ts';
import { openLiveSource } from '#sensor/packet-source/live-source.ts';
import type { PacketSource } from '#sensor/packet-source/packet-source.ts';
import { ethernetFrame, openFrameSender, udp4, udp6 } from './frame-sender.ts';

/** Polls without a frame, of 50 ms each, after which none is on its way: the kernel hands over a block after 40 ms. */
const quietPolls = 8;
const rounds = 40;

/** Frames sent to and from `va`, and the expected counters. */
const frames = [
  { frame: ethernetFrame(0x0800, udp4('10.9.0.1', '10.9.0.2', 100)), ipBytes: 128, kind: 'ipv4' },
  { frame: ethernetFrame(0x0800, udp4('10.9.0.1', '10.9.0.2', 1400)), ipBytes: 1428, kind: 'ipv4' },
  { frame: ethernetFrame(0x86dd, udp6(1, 2, 300)), ipBytes: 348, kind: 'ipv6' },
  { frame: ethernetFrame(0x0800, udp4('10.9.0.1', '10.9.0.3', 200), 77), ipBytes: 228, kind: 'vlan' },
  { frame: ethernetFrame(0x0806, Buffer.alloc(46)), ipBytes: 0, kind: 'other' },
];

function sendAll(): { packets: number; ipPackets: number; ipBytes: number } {
  const sent = { packets: 0, ipPackets: 0, ipBytes: 0 };
  for (const name of ['vb', 'va']) {
    const sender = openFrameSender(name);
    for (let round = 0; round < rounds; round += 1) {
      for (const { frame, ipBytes } of frames) {
        sender.send(frame);
        sent.packets += 1;
        sent.ipPackets += ipBytes > 0 ? 1 : 0;
        sent.ipBytes += ipBytes;
      }
    }
    sender.close();
  }
  return sent;
}

/** Polls until no frame has come for a while. Counts polls, because a machine may stand still between two. */
function pollUntilQuiet(source: PacketSource, observe: Parameters<PacketSource['poll']>[1]): void {
  let quiet = 0;
  while (quiet < quietPolls) {
    quiet += 1;
    source.poll(50, (...frame) => {
      quiet = 0;
      observe(...frame);
    });
  }
}

function count(): unknown {
  const source = openLiveSource({ interfaceName: 'va', ringMiB: 4 });
  const capture = createCapture({
    name: 'va',
    role: 'uplink',
    linkType: source.linkType,
    registrableDomain: () => null,
    local: { prefixes: ['10.9.0.0/16', '2001:db8::/32'], addresses: [] },
  });
  const sent = sendAll();
  const tags = new Map<number, number>();
  pollUntilQuiet(source, (bytes, offset, captured, wire, seconds, nanoseconds, tci) => {
    tags.set(tci, (tags.get(tci) ?? 0) + 1);
    capture.observe(bytes, offset, captured, wire, seconds, nanoseconds, tci);
  });
  const dropped = source.takeDropped();
  source.close();
  const totals = capture.closeAll(Date.now()).map((report) => report.totals);
  return { sent, totals, dropped, tags: [...tags].sort((a, b) => a[0] - b[0]) };
}

function overflow(): unknown {
  const source = openLiveSource({ interfaceName: 'va', ringMiB: 2 });
  const sender = openFrameSender('vb');
  const frame = ethernetFrame(0x0800, udp4('10.9.0.1', '10.9.0.2', 1000));
  const sent = 8000;
  for (let i = 0; i < sent; i += 1) sender.send(frame);
  let handed = 0;
  pollUntilQuiet(source, () => {
    handed += 1;
  });
  const dropped = source.takeDropped();
  const droppedAgain = source.takeDropped();
  sender.send(frame);
  let afterwards = 0;
  pollUntilQuiet(source, () => {
    afterwards += 1;
  });
  source.close();
  sender.close();
  return { sent, handed, dropped, droppedAgain, afterwards };
}

function gone(): unknown {
  const source = openLiveSource({ interfaceName: 'va', ringMiB: 2 });
  execFileSync('ip', ['link', 'set', 'va', 'down']);
  source.poll(50, () => {});
  execFileSync('ip', ['link', 'set', 'va', 'up']);
  const sender = openFrameSender('vb');
  let isHeardAgain = false;
  // The kernel drops what is sent before it has noticed that the link is up.
  for (let i = 0; i < 1200 && !isHeardAgain; i += 1) {
    sender.send(frames[0]!.frame);
    source.poll(50, () => {
      isHeardAgain = true;
    });
  }
  sender.close();
  execFileSync('ip', ['link', 'del', 'va']);
  let code = '';
  for (let i = 0; i < 1200 && code === ''; i += 1) {
    try {
      source.poll(50, () => {});
    } catch (error) {
      code = (error as { code: string }).code;
    }
  }
  source.close();
  return { isHeardAgain, code };
}

/** The whole collection: threads, collector, orderly stop; a list replaces the spool. */
async function collect(): Promise<unknown> {
  const minutes: TelemetryMinute[] = [];
  const gaps: TelemetryGap[] = [];
  let noteListening: (phrase: string) => void = () => {};
  const bothListen = new Promise<void>((resolve) => {
    let count = 0;
    noteListening = (phrase) => {
      if (phrase === 'capture listens') count += 1;
      if (count === 2) resolve();
    };
  });
  const collection = createCollection({
    captures: (['va', 'vb'] as const).map((name) => ({
      name,
      role: name === 'va' ? 'uplink' : 'bridge',
      // Room for half a second without a poll, as on a busy machine: a block is used up every 40 ms.
      source: { kind: 'live', interfaceName: name, ringMiB: 16 },
    })),
    reporter: { ...silentReporter, info: noteListening },
    onCommitted: () => {},
    spool: createUnkeptMinutes((newMinutes, newGaps) => {
      minutes.push(...newMinutes);
      gaps.push(...newGaps);
    }),
  });
  await collection.start();
  collection.follow({
    localPrefixes: ['10.9.0.0/16'],
    protectedAddresses: ['2001:db8::1'],
    owners: [],
    takesClaims: true,
    takesUsage: true,
    takesProtocolNames: true,
    takesLive: true,
    probes: [],
    detection: null,
    filterRules: null,
    omissions: [],
  });
  // Frames sent before both threads listen would not be counted.
  await bothListen;
  const sent = sendAll();
  await collection.stop();
  return { sent, minutes, gaps };
}

const modes: Record<string, () => unknown> = { count, overflow, gone, collect };
if (import.meta.main) process.stdout.write(JSON.stringify(await modes[process.argv[2]!]!()));
