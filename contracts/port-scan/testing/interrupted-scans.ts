/** Scans of one server that end at each of their states, and a model of what is known of its services after them. For tests. */
import { randomUUID } from 'node:crypto';
import {
  portsAsked,
  type ScanOutcome,
  type ScanPhase,
  type ScanProfile,
  type ScanService,
} from '../index.ts';

/** Where a scan ends; of an `unanswered` one every phase ended, and two services did not say what they are. */
export const scanEnds = [
  'tcp_discovery',
  'udp_discovery',
  'before_identification',
  'tcp_identification',
  'udp_identification',
  'unanswered',
  'complete',
] as const;
export type ScanEnd = (typeof scanEnds)[number];

const ports = ['tcp/22', 'tcp/80', 'tcp/443', 'udp/53'] as const;
const found: Readonly<Record<ScanEnd, number>> = {
  ...{ tcp_discovery: 2, udp_discovery: 3, before_identification: 4, tcp_identification: 4 },
  ...{ udp_identification: 4, unanswered: 4, complete: 4 },
};
/** Ports that are identified when the scan ends. */
const identified: Readonly<Record<ScanEnd, readonly string[]>> = {
  ...{ tcp_discovery: [], udp_discovery: [], before_identification: [], tcp_identification: ['tcp/22'] },
  ...{ udp_identification: ports.slice(0, 3), unanswered: ['tcp/22', 'tcp/443'], complete: ports },
};

export interface MadeScan {
  scan_id: string;
  profile: ScanProfile;
  state: ScanOutcome;
  started_at: string;
  finished_at: string;
  phases: ScanPhase[];
  services: ScanService[];
  notes: 'interrupted'[];
}

/** A scan that ended at this time; the version of what it identified is its id. */
export function makeScan(end: ScanEnd, profile: ScanProfile, atMs: number): MadeScan {
  const [scanId, at] = [randomUUID(), new Date(atMs).toISOString()];
  const isWhole = end === 'complete' || end === 'unanswered';
  const asked = portsAsked[profile];
  return {
    ...{ scan_id: scanId, profile, state: isWhole ? 'complete' : 'partial' },
    ...{ started_at: new Date(atMs - 1_000).toISOString(), finished_at: at },
    phases: (['tcp', 'udp'] as const).map((transport) => ({
      ...{ transport, ports_asked: asked, ports_answered: asked, filtered: 0, silent: 0, finished: isWhole },
    })),
    services: ports.slice(0, found[end]).map((port) => ({
      ...{ transport: port.startsWith('tcp') ? 'tcp' : 'udp', port: Number(port.slice(4)) },
      ...{ first_observed_at: at, observed_at: at, scan_id: scanId, tunnel: null, cpe: [] },
      ...answerAt(port, end, scanId),
    })),
    notes: isWhole ? [] : ['interrupted'],
  };
}

function answerAt(port: string, end: ScanEnd, version: string) {
  if (identified[end].includes(port))
    return {
      service: 'http',
      product: 'nginx',
      version,
      extra_info: null,
      method: 'probed',
      confidence: 10,
    } as const;
  const none = { product: null, version: null, extra_info: null };
  if (end === 'unanswered' && port === 'tcp/80')
    return { ...none, service: 'tcpwrapped', method: 'probed', confidence: 8 } as const;
  return { ...none, service: 'http', method: 'table', confidence: 3 } as const;
}

/** By port: the scan that identified it last, in any order of the scans; null: none did. */
export function modelOf(scans: readonly MadeScan[]): Map<string, MadeScan | null> {
  const model = new Map<string, MadeScan | null>();
  for (const scan of scans.toSorted((a, b) => (a.finished_at < b.finished_at ? -1 : 1)))
    for (const { transport, port, version } of scan.services) {
      const key = `${transport}/${port}`;
      model.set(key, version === null ? (model.get(key) ?? null) : scan);
    }
  return model;
}

export interface History {
  name: string;
  /** In the order in which they arrive. */
  scans: MadeScan[];
}

/** A scan that ends at each state before and after a complete one, in both orders of arrival, in both profiles of each. */
export function* pairHistories(nowMs: number): Generator<History> {
  for (const end of scanEnds)
    for (const own of ['common', 'full'] as const)
      for (const other of ['common', 'full'] as const)
        for (const isEarlier of [true, false])
          for (const arrivesFirst of [true, false]) {
            const one = makeScan(end, own, nowMs - (isEarlier ? 60_000 : 30_000));
            const whole = makeScan('complete', other, nowMs - 45_000);
            yield {
              name: `${own} ${end} ${isEarlier ? 'before' : 'after'} a complete ${other} one, arrived ${arrivesFirst ? 'first' : 'last'}`,
              scans: arrivesFirst ? [one, whole] : [whole, one],
            };
          }
}
