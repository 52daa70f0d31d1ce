/** `npm run prove -- first-drop`: how soon a filter drops the first packet of a flood, with a real sensor and monitor each time. */
import type { FloodClass } from '#sensor/testing/attack-traffic.ts';
import { measureFirstDrop } from './testing/first-drop.ts';

export const name = 'first-drop';

const limitMs = 4000;
const attacks: readonly FloodClass[] = ['udp_flood', 'syn_flood', 'ack_flood'];

export async function prove({ n, report }: { n: number; report(line: string): void }) {
  const times: number[] = [];
  for (let i = 0; i < n; i += 1) {
    const attack = attacks[i % attacks.length]!;
    const afterMs = Math.round(await measureFirstDrop(attack));
    report(`${attack}: first drop ${afterMs} ms after the first packet`);
    times.push(afterMs);
  }
  const sorted = times.toSorted((a, b) => a - b);
  return {
    claim: `the first packet is dropped within ${limitMs} ms of the first one of a flood (median ${sorted[n >> 1]}, most ${sorted.at(-1)})`,
    tried: n,
    failures: times.filter((one) => one > limitMs).length,
  };
}
