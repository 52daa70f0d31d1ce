/**
 * Proof that a full map of the kernel's programs gives no wrong number: `n` more than have room of addresses, of spoofed pairs, of rules, and of
 * pairs in the making. What has room is exact, the rest is counted or named as such. No interface is needed.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { filterRulesOfAddress } from '#contracts/sensor-api/filter.ts';
import { droppedAddresses, slots } from '#sensor/kernel/filter-layout.ts';
import { victim } from '#sensor/testing/attack-traffic.ts';
import { FilterRuns, rulesAgainst } from '#sensor/testing/filter-runs.ts';
import { ethernet, reverse, udp } from '#sensor/testing/frames.ts';
import { KernelRuns } from '#sensor/testing/kernel-runs.ts';

export const name = 'maps-full';

const udpVector = { class: 'udp_flood', ports: [] };
const spoofedRows = 63;
/** A plan names no more owners of addresses. */
const ownersMax = 4000;
const openings = 65_536;
const lastingPairs = 100;
const hourMs = 3_600_000;

export async function prove({ n, report }: { n: number; report(line: string): void }) {
  const failures = [
    ...(await fillAddresses(n)),
    ...fillSpoofed(Math.min(n, ownersMax)),
    ...fillRules(n),
    ...fillPairs(n),
  ];
  for (const line of failures) report(line);
  return {
    claim:
      'in full maps of addresses, spoofed pairs, rules and pairs in the making no number is wrong, and what has no room is counted',
    tried: n,
    failures: failures.length,
  };
}

const isEqual = (what: string, found: number, wanted: number) =>
  found === wanted ? [] : [`${what}: ${found} instead of ${wanted}`];

const addressOf = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** Addresses of a prefix, each with a packet to it; then as many others, after the first ones were idle for four minutes. */
async function fillAddresses(n: number): Promise<string[]> {
  const runs = new KernelRuns(true);
  try {
    runs.setLocal({ prefixes: ['10.0.0.0/8'], addresses: [] }, false);
    const room = runs.hostsMax;
    const found: string[] = [];
    for (const [round, from] of [0, 4_000_000].entries()) {
      runs.open(100 + round * 10);
      for (let i = 0; i < room + n; i += 1) {
        const ends = { from: '203.0.113.1', fromPort: 1000, to: addressOf(from + i), toPort: 9 };
        runs.run({ bytes: ethernet(udp(ends, new Uint8Array(i % 50))) });
      }
      const { totals, hosts } = runs.read();
      const isExact = [...hosts].every(
        ([, { packets, rxBytes, txBytes }]) => packets === 1 && rxBytes >= 28 && txBytes === 0,
      );
      found.push(
        ...isEqual(`round ${round}, packets`, totals.packets, room + n),
        ...isEqual(
          `round ${round}, addresses and packets without room`,
          hosts.size + totals.withoutRoom,
          room + n,
        ),
        ...isEqual(`round ${round}, wrong addresses`, isExact ? 0 : 1, 0),
        ...(totals.withoutRoom >= n
          ? []
          : [`round ${round}: only ${totals.withoutRoom} packets without room`]),
        ...(hosts.size >= room / 2 ? [] : [`round ${round}: only ${hosts.size} addresses`]),
      );
      // Idle ones make room with the next reading, once no packet can be on its way to them.
      runs.open(105 + round * 10);
      runs.read();
      await wait(20);
    }
    return found;
  } finally {
    runs.close();
  }
}

/** One server that sends from the addresses of more others than a minute has rows. */
function fillSpoofed(n: number): string[] {
  const runs = new KernelRuns(true);
  try {
    const [sender, owner] = ['52:54:00:00:00:01', '52:54:00:00:00:02'];
    const others = Array.from({ length: spoofedRows + n }, (_, i) => addressOf(1000 + i));
    const owners = [
      { address: '203.0.113.1', macs: [sender] },
      ...others.map((address) => ({ address, macs: [owner] })),
    ];
    runs.setLocal({ prefixes: [], addresses: [], owners }, true);
    for (const from of others)
      runs.run({
        bytes: ethernet(udp({ from, fromPort: 1, to: '198.51.100.1', toPort: 9 }, new Uint8Array(8)), {
          source: sender,
        }),
      });
    const { spoofed, totals } = runs.read();
    const packets = spoofed.reduce((sum, row) => sum + row.packets, 0);
    return [
      ...isEqual('rows of spoofed pairs', spoofed.length, spoofedRows),
      ...isEqual('spoofed packets', packets + totals.spoofedPackets, others.length),
      ...isEqual('bytes without a row', totals.spoofedBytes, n * 36),
    ];
  } finally {
    runs.close();
  }
}

/**
 * Rules of more addresses, and more rules of one, than have room: what is left out is returned, and drops nothing. Then of other addresses,
 * beside the counters of what was dropped, which stay for four minutes: each packet that is dropped has its place there.
 */
function fillRules(n: number): string[] {
  const runs = new FilterRuns();
  try {
    const targets = Array.from({ length: slots / filterRulesOfAddress + n }, (_, i) => addressOf(i));
    const own = (target: string) =>
      Array.from({ length: filterRulesOfAddress }, (_, i) =>
        rulesAgainst(target, udpVector, { match: { length_min: 28 + i } }),
      ).flat();
    const left = new Set(runs.loaded.filter.setRules(targets.flatMap(own)));
    const drops = (to: string) =>
      !runs.receive(ethernet(udp({ from: '203.0.113.1', fromPort: 1, to, toPort: 9 }, new Uint8Array(20))));
    const dropping = targets.filter(drops).length;
    // As many as there are rules, twice: with those above more than there are counters.
    const later = [1_000_000, 2_000_000].map((from) => {
      const others = Array.from({ length: slots }, (_, i) => addressOf(from + i));
      const { length } = runs.loaded.filter.setRules(others.flatMap((to) => rulesAgainst(to, udpVector)));
      return { left: length, dropping: others.filter(drops).length };
    });
    const now = Math.floor(Date.now() / 60_000) * 60;
    const counted = [now - 120, now - 60, now].flatMap((minute) => [
      ...runs.loaded.filter.readDropped(minute).values(),
    ]);
    const droppingLater = later.reduce((sum, one) => sum + one.dropping, 0);
    return [
      ...isEqual('later rules without room', later[0]!.left + later[1]!.left, dropping),
      ...isEqual('later addresses whose packets are dropped', droppingLater, droppedAddresses - dropping),
      ...isEqual(
        'packets that were dropped, by the minute',
        counted.reduce((sum, { rxPackets }) => sum + rxPackets, 0),
        dropping + droppingLater,
      ),
      ...isEqual('rules without room', left.size, n * filterRulesOfAddress),
      ...isEqual('addresses whose packets are dropped', dropping, slots / filterRulesOfAddress),
    ];
  } finally {
    runs.close();
  }
}

/** Pairs that converse, beside answers to more made-up senders than have room: none of them is forgotten. */
function fillPairs(n: number): string[] {
  const runs = new FilterRuns();
  try {
    const target = victim(4);
    const ends = (i: number) => ({ from: addressOf(i), fromPort: 1000, to: target, toPort: 443 });
    const from = (i: number) => ethernet(udp(ends(i), new Uint8Array(20)));
    const to = (i: number) => ethernet(udp(reverse(ends(i)), new Uint8Array(20)));
    const converse = () => {
      for (let i = 0; i < lastingPairs; i += 1) {
        runs.send(to(i));
        runs.receive(from(i));
      }
    };
    converse();
    runs.age();
    converse();
    for (let i = 0; i < openings + n; i += 1) runs.send(to(1_000_000 + i));
    runs.loaded.filter.setRules(rulesAgainst(target, udpVector, { beganAtMs: Date.now() + hourMs }));
    const cut = Array.from({ length: lastingPairs }, (_, i) => i).filter(
      (i) => !runs.receive(from(i)),
    ).length;
    return isEqual('pairs that were cut', cut, 0);
  } finally {
    runs.close();
  }
}
