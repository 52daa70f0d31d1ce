/**
 * Measures what the recording of attacks costs the packet path: the same frames through two capture loops in turn, one of which
 * never recorded. The other one recorded before, or looks for packets of an address that has none meanwhile.
 */
import { systemClock } from '#common/clock/index.ts';
import { createHostTime } from '#sensor/host-time/index.ts';
import type { ObserveFrame } from '#sensor/packet-source/index.ts';
import type { WantedRecording } from '#sensor/recording/index.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { CaptureLoop, createWallWatch } from './capture-loop.ts';

export const name = 'recording';

const rounds = 15;
const repeats = 200;
const clock = { nowMs: Date.now, monotonicMs: () => performance.now() };

export async function run(report: (line: string) => void): Promise<void> {
  const frames = Array.from({ length: 2000 }, (_, i) =>
    ethernet(
      udp(
        { from: `198.51.${i % 200}.${1 + (i % 250)}`, to: '192.0.2.7', fromPort: 1000 + i, toPort: 53 },
        new Uint8Array(i % 400),
      ),
    ),
  );
  const never = createPath(frames);
  const recording = createPath(frames);
  for (const path of [never, recording]) for (let i = 0; i < 3; i += 1) await path.turn();
  const wanted = (id: number, lastWord: number): WantedRecording[] => [
    { id: `${id}`, direction: 'inbound', version: 4, words: [0, 0, 0, lastWord], prefixBits: 128 },
  ];
  const compare = async (title: string, before: (round: number) => void, after: () => void) => {
    const costs: [number, number][] = [];
    for (let round = 0; round < rounds; round += 1) {
      before(round);
      costs.push([await never.turn(), await recording.turn()]);
      after();
    }
    const middle = (of: 0 | 1) => costs.map((cost) => cost[of]).sort((a, b) => a - b)[rounds >> 1]!;
    report(
      `${title}: ${middle(1).toFixed(0)} ns a packet beside ${middle(0).toFixed(0)}, ${(middle(1) / middle(0)).toFixed(2)}`,
    );
  };
  const stop = () => recording.loop.record([]);
  const idle = () => {};
  await compare('before the first recording', idle, idle);
  await compare(
    'while it looks for packets',
    (round) => recording.loop.record(wanted(round, 0x0a000001)),
    stop,
  );
  const victim = (192 << 24) | (2 << 8) | 7;
  await compare(
    `2,000 of ${(repeats * frames.length).toLocaleString('en')} packets recorded`,
    (round) => recording.loop.record(wanted(round, victim)),
    stop,
  );
  await compare('after recordings', idle, idle);
}

function createPath(frames: readonly Uint8Array[]) {
  const ring = Buffer.concat(frames);
  const offsets: number[] = [];
  let end = 0;
  for (const frame of frames) {
    offsets.push(end);
    end += frame.length;
  }
  const loop = new CaptureLoop({
    input: { name: 'bench', role: 'uplink', share: 1, windowMs: 10_000, windowApplicationsMax: 10 },
    watch: createWallWatch(clock.nowMs, clock.monotonicMs),
    hostTime: createHostTime(systemClock),
    say() {},
    source: {
      ...{ linkType: 1, settleMs: 1000, lingerMs: 100 },
      takeDropped: () => 0,
      poll(_: number, observe: ObserveFrame) {
        const second = Math.floor(Date.now() / 1000);
        for (let repeat = 0; repeat < repeats; repeat += 1)
          for (let i = 0; i < offsets.length; i += 1) {
            const { length } = frames[i]!;
            observe(ring, offsets[i]!, length, length, second, 5, -1, 1);
          }
      },
    },
  });
  loop.begin({ prefixes: ['192.0.2.0/24'], addresses: [] });
  return {
    loop,
    async turn(): Promise<number> {
      const before = process.cpuUsage();
      await loop.turn();
      const { user, system } = process.cpuUsage(before);
      return ((user + system) * 1000) / (repeats * frames.length);
    },
  };
}
