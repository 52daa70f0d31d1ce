/** Compares what the monitor received of a case with what nmap was started for and what the ledger said it stored. */
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { requestId, type ScanCase } from './scan-case.ts';

/** What one life printed. */
export interface LifeSaid {
  life: number;
  isKilled: boolean;
  said: string;
}

/** The errors as sentences. */
export function judgeScans(one: ScanCase, lives: readonly LifeSaid[]): string[] {
  const results = new Map<string, ScanResult[]>();
  for (const result of one.results())
    results.set(result.scan_id, [...(results.get(result.scan_id) ?? []), result]);
  const runs = one.runs();
  const scanIds = new Set([...runs.map((run) => run.scanId), ...results.keys(), requestId]);
  return [
    ...one.faults,
    ...[...scanIds].flatMap((scanId) => judgeScan(one, scanId, results.get(scanId) ?? [], runs)),
    ...judgeNotes(lives, results),
    ...judgeDeliveries(one, lives),
  ];
}

function judgeScan(
  one: ScanCase,
  scanId: string,
  results: readonly ScanResult[],
  runs: ReturnType<ScanCase['runs']>,
): string[] {
  const name = scanId === requestId ? 'the request' : 'a scan of the sensor';
  const offences: string[] = [];
  const own = runs.filter((run) => run.scanId === scanId);
  const begun = own.filter(({ word, phase }) => word === 'begin' && phase === 'discover');
  if (new Set(own.map((run) => run.processId)).size > 1) offences.push(`${name} ran nmap in two lives`);
  if (new Set(begun.map((run) => run.transport)).size < begun.length)
    offences.push(`${name} ran a discovery twice`);
  const starts = [...one.arrivals.values()].filter(
    ({ report }) => report.kind === 'started' && report.scan_id === scanId,
  );
  if (starts.length !== 1) offences.push(`${name} was reported as started ${starts.length} times`);
  if (results.length === 0) offences.push(`${name} has no result`);
  if (results.length > 1) offences.push(`${name} has ${results.length} results`);
  const open = new Set([
    'tcp/22',
    `tcp/${20_000 + (Number.parseInt(scanId.slice(-4), 16) % 10_000)}`,
    'udp/53',
  ]);
  for (const result of results) {
    const found = portsOf(result);
    if (found.some((port) => !open.has(port)) || new Set(found).size < found.length)
      offences.push(`${name} found ports that are not open`);
    if (found.length > 0 && begun.length === 0) offences.push(`${name} found ports without nmap`);
    if (Date.parse(result.finished_at) < Date.parse(result.started_at))
      offences.push(`${name} ended before it began`);
    if (result.state !== 'complete') continue;
    const isWhole = ['tcp', 'udp'].every((transport) =>
      ['discover', 'identify'].every((phase) =>
        own.some((run) => run.word === 'end' && run.transport === transport && run.phase === phase),
      ),
    );
    if (!isWhole) offences.push(`${name} is called complete and was not`);
    if (found.length < open.size || result.services.some(({ product }) => product !== 'OpenSSH'))
      offences.push(`${name} is complete without all that was found`);
  }
  return offences;
}

function judgeNotes(
  lives: readonly LifeSaid[],
  results: ReadonlyMap<string, readonly ScanResult[]>,
): string[] {
  return words(lives, 'noted').flatMap(({ scanId, what }) => {
    const known = (results.get(scanId) ?? []).flatMap(portsOf);
    const lost = what.split(',').filter((port) => port !== '' && !known.includes(port));
    return lost.map((port) => `${port.split('/')[0]} port that was stored before a kill is lost`);
  });
}

/** A report goes again only when its removal was not stored, so at most once for each kill. */
function judgeDeliveries(one: ScanCase, lives: readonly LifeSaid[]): string[] {
  const kills = lives.filter(({ isKilled }) => isKilled).length;
  const offences = [...one.arrivals.values()]
    .filter((arrival) => arrival.lives.length > 1 + kills)
    .map(({ report, lives: all }) => `one ${report.kind} arrived ${all.length} times`);
  for (const { scanId, what, life } of words(lives, 'removed')) {
    const arrival = one.arrivals.get(`${scanId} ${what}`);
    if (!arrival) offences.push('a report was removed that never arrived');
    else if (arrival.lives.some((later) => later > life))
      offences.push(`one ${arrival.report.kind} arrived again after its removal`);
  }
  return offences;
}

function words(lives: readonly LifeSaid[], word: string) {
  return lives.flatMap(({ life, said }) =>
    said.split('\n').flatMap((line) => {
      const [first, scanId, what = ''] = line.split(' ');
      return first === word && scanId ? [{ life, scanId, what }] : [];
    }),
  );
}

const portsOf = (result: ScanResult) => result.services.map(({ transport, port }) => `${transport}/${port}`);
