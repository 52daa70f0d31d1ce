/**
 * Proof: `n` runs of twenty TLS connections a second beside 100 to 20,000 UDP exchanges a second (lookups, NTP, QUIC,
 * games, RPC, and more clients than a minute has rows), some beside a scan.
 *
 * TLS connections keep their names, bytes are in the rows of their clients and servers, the totals of the interface and
 * of local addresses are exact, and every packet without a row is counted. The checks must detect a table that is too
 * small, a lost packet, a skipped hello, a lost row, and a row with exchanged ends.
 */
import { seededRandom } from '#common/random/index.ts';
import { createCapture, type MinuteReport, type UsageRow } from '#sensor/capture/index.ts';
import { testDomain, testMinute } from '#sensor/testing/captures.ts';
import { mixes, type PressureOptions, type PressureTruth, playPressure } from './pressure-traffic.ts';

export const name = 'flow-pressure';

const ratesFrom = 100;
const ratesTo = 20_000;
/** Up to this rate nearly everything must have a row. */
const ordinaryRate = 5000;
/** Part of a connection's bytes that must be under its name; an opening in the previous minute has none yet. */
const nameBytes = 0.98;
const kept = { names: 0.999, bytes: 0.99, pressed: 0.95 } as const;
/** Runs begin late in a minute and continue into the next. */
const startSecond = testMinute + 45;

export type PlantedFault = 'small-table' | 'lost-packet' | 'unread-hello' | 'lost-row' | 'exchanged-ends';
export const plantedFaults: readonly PlantedFault[] = [
  'small-table',
  'lost-packet',
  'unread-hello',
  'lost-row',
  'exchanged-ends',
];

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
  seconds?: number;
  /** Maximum number of exchanges in a run, which shortens runs at high rates. */
  exchangesMax?: number;
}

/** Performs `n` runs, then one with each planted fault. */
export async function prove({ n, seed, report, seconds = 40, exchangesMax = 400_000 }: ProveOptions) {
  const random = seededRandom(seed);
  const worst = { names: 1, bytes: 1 };
  let failures = 0;
  for (let i = 0; i < n; i += 1) {
    // The two limits and the ordinary rate come first; the other rates are random.
    const drawn = Math.round(ratesFrom * (ratesTo / ratesFrom) ** random());
    const rate = [ordinaryRate, ratesTo, ratesFrom][i] ?? drawn;
    const mix = mixes[(i + 1) % mixes.length]!;
    const scanRate = i % 2 === 0 ? 0 : 1000;
    const lasts = Math.min(seconds, Math.max(3, Math.ceil(exchangesMax / rate)));
    const run = { seed: seed * 1000 + i, mix, rate, seconds: lasts, tlsRate: 20, scanRate };
    const { offences, names, bytes } = press(run, null);
    worst.names = Math.min(worst.names, names);
    worst.bytes = Math.min(worst.bytes, bytes);
    if (offences.length > 0) failures += 1;
    for (const offence of offences) report(`${mix} at ${rate}/s: ${offence}`);
  }
  let caught = 0;
  for (const fault of plantedFaults) {
    const run = { seed, mix: 'mixed', rate: 400, seconds: 10, tlsRate: 20, scanRate: 0 } as const;
    const { offences } = press(run, fault);
    report(`planted ${fault}: ${offences[0] ?? 'NOT NOTICED'}`);
    if (offences.length > 0) caught += 1;
  }
  return {
    claim: `20 TLS connections/s beside ${ratesFrom} to ${ratesTo} UDP exchanges/s: at least ${percent(worst.names)} of names and ${percent(worst.bytes)} of bytes are in rows, totals are exact`,
    tried: n,
    failures,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

function percent(part: number): string {
  return `${(Math.floor(part * 10_000) / 100).toFixed(2)} %`;
}

interface Pressed {
  offences: string[];
  /** Parts of TLS connections and of bytes that are in the right rows. */
  names: number;
  bytes: number;
}

function press(options: PressureOptions, fault: PlantedFault | null): Pressed {
  const capture = createCapture({
    name: 'press0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: testDomain,
    local: { prefixes: ['192.0.2.0/24'], addresses: [] },
    hashKey: [options.seed, options.rate],
    ...(fault === 'small-table' ? { flowsMax: 64 } : {}),
  });
  const reports: MinuteReport[] = [];
  let count = 0;
  let hellos = 0;
  const truth = playPressure(options, (frame, ms) => {
    count += 1;
    if (fault === 'lost-packet' && count === 5000) return;
    const isHello = frame[23] === 6 && frame.length > 60 && frame[54] === 0x16;
    if (isHello) hellos += 1;
    const seconds = startSecond + Math.floor(ms / 1000);
    const cut = fault === 'unread-hello' && isHello && hellos % 50 === 0 ? 60 : frame.length;
    capture.observe(frame, 0, cut, frame.length, seconds, (ms % 1000) * 1_000_000, -1);
  });
  reports.push(...capture.closeAll((startSecond + options.seconds) * 1000));
  return judge(options, truth, reports, fault);
}

function judge(
  options: PressureOptions,
  truth: PressureTruth,
  reports: readonly MinuteReport[],
  fault: PlantedFault | null,
): Pressed {
  const rows = reports.flatMap((one) => one.usage);
  if (fault === 'lost-row') {
    const named = rows.filter((row) => row.evidence === 'tls_sni');
    for (const row of named.slice(0, Math.ceil(named.length / 50))) rows.splice(rows.indexOf(row), 1);
  }
  if (fault === 'exchanged-ends') {
    for (const row of rows.filter((one) => one.protocol === 17)) {
      const { client, server } = row;
      Object.assign(row, { client: server, server: client });
    }
  }
  const told = sumRows(rows);
  const names =
    [...truth.tls].filter(([row, bytes]) => (told.get(row) ?? 0) >= bytes * nameBytes).length /
    truth.tls.size;
  // There are more clients than rows: only the bytes of the TLS connections must be in rows.
  const wanted = options.mix === 'crowd' ? truth.tls : new Map([...truth.tls, ...truth.exchanges]);
  const bytes = shareOf(wanted, told);
  const bars =
    options.rate <= ordinaryRate ? kept : { names: kept.pressed, bytes: kept.pressed, pressed: kept.pressed };
  const offences: string[] = [];
  if (names < bars.names) offences.push(`${percent(names)} of TLS connections kept their names`);
  if (bytes < bars.bytes) offences.push(`${percent(bytes)} of bytes are in rows`);
  return { offences: [...offences, ...checkTotals(truth, reports)], names, bytes };
}

/** Bytes by client, server, protocol and port, with the name if one was spoken. */
function sumRows(rows: readonly UsageRow[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const name = row.evidence === 'tls_sni' ? ` ${row.name}` : '';
    const key = `${row.client} ${row.server} ${row.protocol} ${row.serverPort}${name}`;
    sums.set(key, (sums.get(key) ?? 0) + row.clientBytes + row.serverBytes);
  }
  return sums;
}

function shareOf(wanted: ReadonlyMap<string, number>, told: ReadonlyMap<string, number>): number {
  let all = 0;
  let found = 0;
  for (const [row, bytes] of wanted) {
    all += bytes;
    found += Math.min(bytes, told.get(row) ?? 0);
  }
  return found / all;
}

function checkTotals(truth: PressureTruth, reports: readonly MinuteReport[]): string[] {
  const offences: string[] = [];
  const sum = (value: (report: MinuteReport) => number) =>
    reports.reduce((total, one) => total + value(one), 0);
  const packets = sum((one) => one.totals.packets);
  const bytes = sum((one) => one.totals.ipBytes);
  if (packets !== truth.packets) offences.push(`${truth.packets} packets came, ${packets} counted`);
  if (bytes !== truth.bytes) offences.push(`${truth.bytes} bytes came, ${bytes} counted`);
  const local = new Map<string, number>();
  for (const host of reports.flatMap((one) => one.hosts)) {
    if (host.isLocal) local.set(host.address, (local.get(host.address) ?? 0) + host.rxBytes + host.txBytes);
  }
  for (const [address, want] of truth.local)
    if (local.get(address) !== want)
      offences.push(`${address} moved ${want} bytes, ${local.get(address)} counted`);
  const inRows = sum((one) => one.usage.reduce((total, row) => total + row.packets, 0));
  const truncated = sum((one) => one.totals.detailTruncated);
  if (inRows + truncated < truth.packets)
    offences.push(`${truth.packets - inRows - truncated} packets without a row are not counted`);
  const rowsMost = Math.max(...reports.map((one) => one.usage.length));
  if (rowsMost > 4096) offences.push(`a minute has ${rowsMost} rows`);
  return offences;
}
