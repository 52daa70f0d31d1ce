/**
 * Proof: `n` forged DNS answers that a client did not ask for, while it has genuine questions open.
 *
 * No forged name may reach a connection of the client, and genuine answers must still name connections. The checks must
 * detect an engine that accepts every answer, and one that accepts none.
 */

import { seededRandom } from '#common/random/index.ts';
import type { Capture } from '#sensor/capture/capture.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { testDomain, testMinute } from '#sensor/testing/captures.ts';
import {
  ascii,
  type DnsRecord,
  dnsMessage,
  ethernet,
  ip,
  join,
  reverse,
  Tcp,
  tcp,
  u16,
  udp,
} from '#sensor/testing/frames.ts';

export const name = 'dns-poisoning';

const client = '192.0.2.10';
const attacker = '192.0.2.66';
const resolver = '198.51.100.53';
const other = '198.51.100.99';
const perMinute = 800;

export type PlantedFault = 'believes-all' | 'believes-none';
export const plantedFaults: readonly PlantedFault[] = ['believes-all', 'believes-none'];

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

/** Runs the forgeries, then runs them against each planted fault. */
export async function prove({ n, seed, report }: ProveOptions) {
  const offences = forge(n, seed, null, report);
  for (const offence of offences.slice(0, 20)) report(offence);
  let caught = 0;
  for (const fault of plantedFaults) {
    const found = forge(Math.min(n, 2000), seed, fault, () => {});
    report(`planted ${fault}: ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: 'no forged DNS answer gives a name to a connection of another client; genuine ones still do',
    tried: n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

interface Lookup {
  from: string;
  fromPort: number;
  to: string;
  toPort: number;
}

interface Forgery {
  kind: string;
  /** Packets of the forgery; the first may be the attacker's own question. */
  packets: Uint8Array[];
}

function forge(
  n: number,
  seed: number,
  fault: PlantedFault | null,
  report: (line: string) => void,
): string[] {
  const random = seededRandom(seed);
  const capture = createCapture({
    name: 'br0',
    role: 'bridge',
    linkType: 1,
    registrableDomain: testDomain,
    local: { prefixes: ['192.0.2.0/24'], addresses: [] },
  });
  const offences: string[] = [];
  const kinds = new Map<string, number>();
  let second = testMinute;
  let honest = 0;
  let honestNamed = 0;
  const offer = (packet: Uint8Array) => {
    const frame = ethernet(packet);
    capture.observe(frame, 0, frame.length, frame.length, second, 0, -1);
  };
  for (let i = 0; i < n; i += 1) {
    const question: Lookup = {
      from: client,
      fromPort: 1024 + Math.floor(random() * 60_000),
      to: resolver,
      toPort: 53,
    };
    const id = Math.floor(random() * 65_536);
    const asked = `host-${i}.honest.example`;
    const target = address(i, 20);
    const bait = address(i, 40);
    // The genuine question is open while the forgery arrives.
    offer(udp(question, dnsMessage({ id, name: asked })));
    const forgery = forgeries[i % forgeries.length]!({ question, id, asked, bait, random });
    kinds.set(forgery.kind, (kinds.get(forgery.kind) ?? 0) + 1);
    if (fault === 'believes-all') offer(udp(question, dnsMessage({ id, name: 'bank.forged.example' })));
    for (const packet of forgery.packets) offer(packet);
    if (fault === 'believes-all')
      offer(
        udp(
          reverse(question),
          dnsMessage({ id, name: 'bank.forged.example', answers: answerOf('bank.forged.example', bait) }),
        ),
      );
    if (fault !== 'believes-none')
      offer(udp(reverse(question), dnsMessage({ id, name: asked, answers: answerOf(asked, target) })));
    // The client sends a datagram to both addresses: only the first may get a name.
    offer(udp({ from: client, fromPort: 40_000, to: target, toPort: 443 }, ascii('quic')));
    offer(udp({ from: client, fromPort: 40_000, to: bait, toPort: 443 }, ascii('quic')));
    honest += 1;
    if (i % perMinute === perMinute - 1 || i === n - 1) {
      second += 60;
      honestNamed += judge(capture, second, offences);
    }
  }
  report(`forged: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ')}`);
  report(`${honestNamed} of ${honest} honest answers named their connection`);
  if (honestNamed < honest)
    offences.push(`only ${honestNamed} of ${honest} honest answers named their connection`);
  return offences;
}

/**
 * Closes the minute. Returns how many connections have a genuine name, and adds those with a forged name to `offences`.
 */
function judge(capture: Capture, second: number, offences: string[]): number {
  let named = 0;
  for (const row of capture.closeMinutes(second * 1000).flatMap((one) => one.usage)) {
    if (row.client !== client || row.evidence === 'none') continue;
    const isBait = Number.parseInt(row.server, 10) >= 40;
    if (row.name === 'honest.example' && !isBait) named += 1;
    else offences.push(`${row.server} is called ${row.name}`);
  }
  return named;
}

function address(i: number, first: number): string {
  return `${first + ((i >> 16) & 7)}.${(i >> 8) & 255}.${i & 255}.1`;
}

function answerOf(name: string, target: string, ttl = 300): DnsRecord[] {
  return [{ name, ttl, address: target }];
}

interface Situation {
  question: Lookup;
  id: number;
  asked: string;
  bait: string;
  random: () => number;
}

const bank = 'www.bank.example';

function answer(ends: Lookup, id: number, name: string, answers: DnsRecord[]): Uint8Array {
  return udp(reverse(ends), dnsMessage({ id, name, answers }));
}

/** Ways to forge a name; none of them may work. */
const forgeries: ((situation: Situation) => Forgery)[] = [
  ({ question, id, bait }) => ({
    kind: 'unsolicited name',
    packets: [answer(question, id, bank, answerOf(bank, bait))],
  }),
  ({ question, id, asked, bait, random }) => ({
    kind: 'wrong id',
    packets: [
      answer(question, (id + 1 + Math.floor(random() * 65_000)) & 0xffff, asked, answerOf(asked, bait)),
    ],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'wrong port',
    packets: [answer({ ...question, fromPort: question.fromPort ^ 1 }, id, asked, answerOf(asked, bait))],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'another resolver',
    packets: [answer({ ...question, to: other }, id, asked, answerOf(asked, bait))],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'not from port 53',
    packets: [answer({ ...question, toPort: 5353 }, id, asked, answerOf(asked, bait))],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'another type',
    packets: [
      udp(reverse(question), dnsMessage({ id, name: asked, type: 28, answers: answerOf(asked, bait) })),
    ],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'record off the chain',
    packets: [answer(question, id, asked, answerOf(bank, bait))],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'CNAME loop',
    packets: [
      answer(question, id, asked, [
        { name: asked, ttl: 9, cname: 'a.example' },
        { name: 'a.example', ttl: 9, cname: asked },
        ...answerOf(bank, bait),
      ]),
    ],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'CNAME chain without end',
    packets: [answer(question, id, asked, chain(asked, 60, bait))],
  }),
  ({ question, id, bait }) => ({
    kind: 'answer to another client',
    packets: [
      udp({ ...question, from: attacker }, dnsMessage({ id, name: bank })),
      answer({ ...question, from: attacker }, id, bank, answerOf(bank, bait)),
    ],
  }),
  ({ question, id, asked, bait }) => ({
    kind: 'over TCP without a question',
    packets: [overTcp(reverse(question), dnsMessage({ id, name: asked, answers: answerOf(asked, bait) }))],
  }),
  ({ question, id, bait }) => ({
    kind: 'in fragments',
    packets: inFragments(answer(question, id, bank, answerOf(bank, bait))),
  }),
  ({ question, bait }) => ({
    kind: 'multicast DNS',
    packets: [
      udp(
        { from: attacker, fromPort: 5353, to: '224.0.0.251', toPort: 5353 },
        dnsMessage({ id: 0, name: bank, answers: answerOf(bank, bait) }),
      ),
      udp(
        { from: attacker, fromPort: 5353, to: question.from, toPort: 5353 },
        dnsMessage({ id: 0, name: bank, answers: answerOf(bank, bait) }),
      ),
    ],
  }),
  ({ question, id, bait }) => ({
    kind: 'TTL 2^31 and 0',
    packets: [
      answer(question, id, bank, answerOf(bank, bait, 2 ** 31)),
      answer(question, id, bank, answerOf(bank, bait, 0)),
    ],
  }),
];

/** More links than the parser follows, with the forged address at the end. */
function chain(from: string, length: number, bait: string): DnsRecord[] {
  const names = [from, ...Array.from({ length }, (_, i) => `c${i}.example`)];
  const records: DnsRecord[] = names.slice(1).map((cname, i) => ({ name: names[i]!, ttl: 9, cname }));
  return [...records, ...answerOf(names.at(-1)!, bait)];
}

function overTcp(ends: Lookup, message: Uint8Array): Uint8Array {
  return tcp(ends, Tcp.ack | Tcp.push, 1, join(u16(message.length), message));
}

function inFragments(packet: Uint8Array): Uint8Array[] {
  const payload = packet.subarray(20);
  const ends = { from: resolver, to: client, protocol: 17, id: 4711 };
  return [0, 24, 48, 72, 96]
    .filter((offset) => offset < payload.length)
    .map((offset) =>
      ip(payload.subarray(offset, offset + 24), { ...ends, offset, more: offset + 24 < payload.length }),
    );
}
