/** The incidents of a capture for people. */
import { describeProtocol } from '#contracts/ip-protocols.ts';
import type { Incident } from '#sensor/detector/index.ts';
import { incidentReasonLines, largeTargetLines } from './detect-explain.ts';
import { sourcesOf } from './detect-json.ts';
import type { Detection } from './detection.ts';
import { formatInstant, formatMs } from './instants.ts';
import { type Column, formatAmount, formatCount, paint, renderTable, type TextLook } from './text-table.ts';

const columns: readonly Column[] = [
  { title: 'Target', style: 'name', shrinksTo: 18 },
  { title: 'Direction' },
  { title: 'Class', style: 'strong' },
  { title: 'Severity' },
  { title: 'Started' },
  { title: 'Decided', isNumber: true },
  { title: 'Recovered' },
  { title: 'Peak bits', isNumber: true },
  { title: 'Peak packets', isNumber: true },
  { title: 'Bytes', isNumber: true },
];
const sourcesShown = 5;
/** A flood from spoofed addresses has no network that is worth showing. */
const shownShareMin = 0.01;

/** Lines of the summary, the incidents and their vectors. `explains`: with reasons, and the largest other targets. */
export function* detectionLines(detection: Detection, look: TextLook, explains: boolean): Generator<string> {
  yield* incidentLines(detection, look, explains);
  const { largestOthers } = detection.result;
  if (largestOthers.length === 0) return;
  yield '';
  yield paint(`Largest without an incident (${formatCount(largestOthers.length)})`, 'strong', look);
  for (const one of largestOthers) yield* largeTargetLines(one);
}

function* incidentLines(detection: Detection, look: TextLook, explains: boolean): Generator<string> {
  const { packets, firstAt, lastAt, result } = detection;
  const span = firstAt && lastAt ? `, ${formatInstant(firstAt)} to ${formatInstant(lastAt)}` : '';
  yield `${formatCount(packets)} packets${span}; ${formatCount(result.hosts)} protected addresses, ${formatCount(result.ticks)} seconds judged.`;
  if (result.incidents.length === 0) {
    yield 'No incidents.';
    return;
  }
  yield '';
  yield paint(`Incidents (${formatCount(result.incidents.length)})`, 'strong', look);
  yield* renderTable(columns, result.incidents.map(cellsOf), look);
  for (const incident of result.incidents) {
    yield* detailLines(incident, look);
    if (explains) yield* incidentReasonLines(incident);
  }
}

function cellsOf(one: Incident): string[] {
  return [
    targetText(one),
    one.direction,
    one.class,
    one.severity,
    formatMs(one.startedAt).slice(0, 19),
    `${((one.detectedAt - one.startedAt) / 1000).toFixed(1)} s`,
    one.recoveredAt === null ? 'active' : formatMs(one.recoveredAt).slice(11, 19),
    formatAmount(one.peak.bps, 'bit/s'),
    formatAmount(one.peak.pps, 'p/s'),
    formatAmount(one.totals.bytes, 'B'),
  ];
}

const targetText = ({ target: { value, mac } }: Incident) =>
  mac === undefined ? value : `${mac} of ${value}`;

function* detailLines(one: Incident, look: TextLook): Generator<string> {
  yield '';
  yield paint(`${one.class} ${one.direction}, ${targetText(one)}`, 'strong', look);
  for (const vector of one.vectors) {
    const ports = vector.ports.length > 0 ? `, ports ${vector.ports.join(', ')}` : '';
    const sources = vector.source_ports.length > 0 ? `, from ports ${vector.source_ports.join(', ')}` : '';
    const protocols =
      vector.protocols.length > 0 ? `, IP protocol ${vector.protocols.map(describeProtocol).join(', ')}` : '';
    yield `  ${vector.class}: ${percent(vector.packets_share)} of packets, ${percent(vector.bytes_share)} of bytes${ports}${sources}${protocols}`;
  }
  for (const past of one.vectorTimes.filter(
    ({ class: name }) => !one.vectors.some((now) => now.class === name),
  ))
    yield `  before: ${past.class}, until ${formatMs(past.lastObservedAt).slice(11, 19)}`;
  const sources = sourcesOf(one)
    .filter(({ share }) => share >= shownShareMin)
    .slice(0, sourcesShown)
    .map(({ prefix, share }) => `${prefix} (${percent(share)})`);
  if (sources.length > 0) yield `  from ${sources.join(', ')}`;
  else if (sourcesOf(one).length > 0)
    yield `  from many networks, none with ${percent(shownShareMin)} of the packets`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
