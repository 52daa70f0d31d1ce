/**
 * The classes of attacks. Wire names, words, drills and filters of every program are made from this one table; which packets a
 * class consists of stands in `sensor/detector/classify.ts`.
 */

/** Metrics of the thresholds, by what they count: `contracts/sensor-api/detection.ts`. */
export type ClassMetric =
  | 'syn_pps'
  | 'udp_pps'
  | 'udp_bps'
  | 'icmp_pps'
  | 'fragment_pps'
  | 'amplification_bps';

/** What tells the packets of a class from others, beside the attacked or attacking address. */
export interface ClassFilter {
  /** IP protocol, of IPv4 and of IPv6. */
  protocol?: readonly [number, number];
  /** Values of the vector that are filtered as well. Without protocols there is no filter; without ports it is of all ports. */
  ofVector?: 'protocols' | 'source_ports';
  /** Bits of TCP flags: all of `set` are set, none of `clear`. */
  flags?: { set: number; clear: number };
  isFragment?: true;
}

interface ClassRow {
  /** In the middle of a sentence. */
  words: string;
  /** Metrics that count its packets, beside all packets and bits. */
  metrics: readonly ClassMetric[];
  /** Bytes of a packet of a drill; missing: it can't be rehearsed. */
  drillBytes?: number;
  /** Missing: it can't be told from other traffic. */
  filter?: ClassFilter;
  /** Version of this table that added the class, one above the newest; missing: every receiver knows it. Others are told `other`. */
  since?: number;
  /** It is told by missing answers, so it says nothing where one direction only is seen. */
  restsOnAnswers?: true;
  /** The name that it had on wires and in stores of before. */
  formerly?: string;
}

const [syn, rst, ack] = [0x02, 0x04, 0x10];
const tcp = [6, 6] as const;
const udp = [17, 17] as const;

/** In the order in which a sensor considers them. */
const table = {
  fragment_flood: {
    words: 'fragment flood',
    metrics: ['fragment_pps'],
    drillBytes: 1400,
    filter: { isFragment: true },
  },
  /** Answers of many reflectors to one address. */
  amplification: {
    words: 'amplification attack',
    metrics: ['amplification_bps', 'udp_pps', 'udp_bps'],
    drillBytes: 1200,
    filter: { protocol: udp, ofVector: 'source_ports' },
  },
  /** Outbound: answers of one UDP port, larger than what was asked. */
  reflector: {
    words: 'reflection attack',
    metrics: ['amplification_bps'],
    drillBytes: 1200,
    filter: { protocol: udp, ofVector: 'source_ports' },
    since: 1,
  },
  syn_flood: {
    words: 'SYN flood',
    metrics: ['syn_pps'],
    drillBytes: 60,
    filter: { protocol: tcp, flags: { set: syn, clear: ack } },
  },
  synack_reflection: {
    words: 'SYN-ACK reflection',
    metrics: [],
    drillBytes: 60,
    filter: { protocol: tcp, flags: { set: syn | ack, clear: 0 } },
  },
  ack_flood: {
    words: 'ACK flood',
    metrics: [],
    drillBytes: 60,
    filter: { protocol: tcp, flags: { set: ack, clear: syn } },
    restsOnAnswers: true,
  },
  rst_flood: {
    words: 'RST flood',
    metrics: [],
    drillBytes: 40,
    filter: { protocol: tcp, flags: { set: rst, clear: 0 } },
  },
  udp_flood: {
    words: 'UDP flood',
    metrics: ['udp_pps', 'udp_bps'],
    drillBytes: 512,
    filter: { protocol: udp },
    restsOnAnswers: true,
  },
  icmp_flood: { words: 'ICMP flood', metrics: ['icmp_pps'], drillBytes: 84, filter: { protocol: [1, 58] } },
  /** IP protocols other than TCP, UDP and ICMP; its vectors name them. */
  protocol_flood: {
    words: 'IP protocol flood',
    metrics: [],
    drillBytes: 512,
    filter: { ofVector: 'protocols' },
    since: 1,
    formerly: 'gre_flood',
  },
  connection_flood: {
    words: 'connection flood',
    metrics: [],
    filter: { protocol: tcp, flags: { set: syn, clear: ack } },
    restsOnAnswers: true,
  },
  high_volume: { words: 'high traffic volume', metrics: [] },
  other: { words: 'attack of another kind', metrics: [] },
} as const satisfies Record<string, ClassRow>;

export type AttackClass = keyof typeof table;
export const attackClasses = Object.keys(table) as AttackClass[];
export const attackClassRows: Readonly<Record<AttackClass, ClassRow>> = table;

/** The class of a name; of one that we don't know, which a newer program may send, `other`. */
export function attackClassOf(name: string): AttackClass {
  return attackClasses.find((one) => one === name || attackClassRows[one].formerly === name) ?? 'other';
}

/** Of this table: receivers say which one they know. */
export const classesVersion = Math.max(...attackClasses.map((name) => attackClassRows[name].since ?? 0));

/** What a receiver that knows this version of the table is told. */
export function classForReceiver(name: AttackClass, version: number): AttackClass {
  return (attackClassRows[name].since ?? 0) <= version ? name : 'other';
}

/** The filter of a vector of this class with these IP protocols; null: its packets can't be told from others. */
export function filterOf(name: string, protocols: readonly number[] = []): ClassFilter | null {
  const { filter } = attackClassRows[attackClassOf(name)];
  return filter === undefined || (filter.ofVector === 'protocols' && protocols.length === 0) ? null : filter;
}

/** Classes that are told by missing answers. */
export const classesOfMissingAnswers = attackClasses.filter((name) => attackClassRows[name].restsOnAnswers);

/** The name of a class within a sentence; one that this version does not know reads as it is. */
export function describeClass(name: string): string {
  return attackClassRows[name as AttackClass]?.words ?? name.replaceAll('_', ' ');
}

/** The same at the beginning of a sentence, or alone. */
export function titleOfClass(name: string): string {
  const words = describeClass(name);
  return words.charAt(0).toUpperCase() + words.slice(1);
}
