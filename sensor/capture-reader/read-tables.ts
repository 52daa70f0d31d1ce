/**
 * `sensor read` for people: a summary in a few sentences, then short tables, the largest rows first.
 *
 * Only the displayed rows are formatted.
 */

import { serviceName } from '#common/ip/port-services.ts';
import { transportName } from '#contracts/ip-protocols.ts';
import {
  ApplicationRow,
  type ApplicationRows,
  type ListedAnswer,
  type ListedApplication,
  type ListedFlow,
  type RowWeight,
  type TableRows,
} from '#sensor/capture/index.ts';
import type { AnswerLog } from './answer-log.ts';
import type { Findings } from './read-files.ts';
import { isFiltered } from './read-filter.ts';
import type { MinuteSums } from './read-frames.ts';
import type { ReadQuery, SortOrder } from './read-query.ts';
import {
  type Column,
  formatAmount,
  formatCount,
  formatInstant,
  formatMinute,
  paint,
  renderTable,
  type TextLook,
  type TextOutput,
} from './text-output.ts';

const barMax = 24;

/** Creates a writer of findings for this query. */
export function tablesWriter(query: ReadQuery, look: TextLook) {
  return (out: TextOutput, findings: Findings): void => {
    for (const line of tableLines(findings, query, look)) out.write(`${line}\n`);
  };
}

function* tableLines(findings: Findings, query: ReadQuery, look: TextLook): Generator<string> {
  const { result, selection, answers, minutes } = findings;
  yield* summary(findings, isFiltered(query), look);
  if (minutes) yield* minuteLines(minutes, look);
  function* show<T>(
    title: string,
    columns: Column[],
    rows: TableRows<T>,
    nameOf: (row: T) => string,
    cells: (row: T) => string[],
  ) {
    const chosen = chooseRows(rows, query.sort, query.top, nameOf);
    yield* section(
      title,
      columns,
      rows.count,
      {
        *[Symbol.iterator]() {
          for (const row of chosen) yield cells(rows.at(row));
        },
      },
      chosen.length,
      look,
    );
  }
  const applications = applicationsByService(result.applications);
  yield* show(
    'Applications',
    applicationColumns,
    applications,
    (one) => one.name,
    (one) => [
      one.name,
      transportName(one.protocol),
      one.serverPort === null ? '' : String(one.serverPort),
      formatAmount(one.inboundBytes, 'B'),
      formatAmount(one.outboundBytes, 'B'),
    ],
  );
  const flows = new Connections(selection);
  yield* show('Flows', flowColumns, flows, (flow) => flow.host ?? flow.name, flowCells);
  yield* answerLines(answers, query, look);
  yield* show(
    'Hosts',
    hostColumns,
    selection.hosts,
    (host) => host.address,
    (host) => [
      host.address,
      formatAmount(host.rxBytes, 'B'),
      formatAmount(host.txBytes, 'B'),
      formatCount(host.packets),
    ],
  );
  yield* show(
    'Conversations',
    conversationColumns,
    selection.conversations,
    (pair) => pair.a,
    (pair) => [
      pair.a,
      pair.b,
      formatAmount(pair.bytesAToB, 'B'),
      formatAmount(pair.bytesBToA, 'B'),
      formatCount(pair.packetsAToB + pair.packetsBToA),
    ],
  );
}

function* summary({ facts, result, selection }: Findings, hasFilter: boolean, look: TextLook) {
  const { totals } = result;
  yield paint(
    `${formatCount(totals.packets)} packets, ${formatAmount(totals.ipBytes, 'B')} of IP`,
    'strong',
    look,
  );
  if (facts.firstAt && facts.lastAt) {
    const seconds =
      facts.lastAt.seconds -
      facts.firstAt.seconds +
      (facts.lastAt.nanoseconds - facts.firstAt.nanoseconds) / 1e9;
    const rate = seconds > 0 ? `, ${formatAmount((totals.ipBytes * 8) / seconds, 'bit/s')} on average` : '';
    yield `${formatInstant(facts.firstAt)} to ${formatInstant(facts.lastAt)}: ${formatDuration(seconds)}${rate}`;
  }
  const { ipPackets, nonIpPackets, parserDropped } = totals;
  yield `${formatCount(ipPackets)} IP, ${formatCount(nonIpPackets)} not IP, ${formatCount(parserDropped)} malformed or truncated`;
  const warn = (text: string) => paint(text, 'warn', look);
  if (parserDropped > 0) {
    const share = ((parserDropped / totals.packets) * 100).toPrecision(2);
    yield warn(`${share} % of the packets could not be decoded: their bytes are in no table.`);
  }
  if (facts.cutFrames > 0) {
    yield warn(
      `${formatCount(facts.cutFrames)} ${facts.cutFrames === 1 ? 'packet was' : 'packets were'} truncated to at most ${facts.snapLength} bytes in the file: byte counts are exact, names may be missing.`,
    );
  }
  if (!hasFilter) return;
  const { flows } = selection;
  let bytes = 0;
  for (let row = 0; row < flows.count; row += 1) bytes += flows.weight(row, 'bytes');
  yield `${formatCount(flows.count)} of ${formatCount(result.flows.count)} flows match, ${formatAmount(bytes, 'B')}; the lines above count all packets`;
}

function* minuteLines(minutes: MinuteSums, look: TextLook): Generator<string> {
  const rows = minutes.rows();
  const most = rows.reduce((largest, one) => Math.max(largest, one.bytes), 1);
  const columns: Column[] = [
    { title: 'minute (UTC)' },
    { title: 'packets', isNumber: true },
    { title: 'bytes', isNumber: true },
    { title: 'bit/s', isNumber: true },
    { title: 'malformed', isNumber: true },
    { title: '', style: 'name', shrinksTo: 4 },
  ];
  yield '';
  yield paint('Minutes', 'strong', look);
  const cells = function* () {
    for (const one of rows) {
      yield [
        formatMinute(one.minute).slice(0, 16).replace('T', ' '),
        formatCount(one.packets),
        formatAmount(one.bytes, 'B'),
        formatAmount((one.bytes * 8) / 60, 'bit/s'),
        one.parserDropped === 0 ? '' : formatCount(one.parserDropped),
        '▆'.repeat(Math.ceil((one.bytes / most) * barMax)),
      ];
    }
  };
  yield* renderTable(columns, { [Symbol.iterator]: cells }, look);
}

const applicationColumns: Column[] = [
  { title: 'name', style: 'name', shrinksTo: 16, keepsEnd: true },
  { title: 'transport' },
  { title: 'port', isNumber: true },
  { title: 'in', isNumber: true },
  { title: 'out', isNumber: true },
];

const flowColumns: Column[] = [
  { title: 'client', shrinksTo: 12, keepsEnd: true },
  { title: 'server', shrinksTo: 12, keepsEnd: true },
  { title: 'transport' },
  { title: 'name', style: 'name', shrinksTo: 14, keepsEnd: true },
  { title: 'evidence', style: 'quiet' },
  { title: 'sent', isNumber: true },
  { title: 'received', isNumber: true },
  { title: 'packets', isNumber: true },
];

const evidenceWords: Readonly<Record<string, string>> = {
  tls_sni: 'TLS',
  tls_outer: 'TLS (outer)',
  http_host: 'HTTP',
  http_connect: 'CONNECT',
  dns: 'DNS',
  none: '',
};

/** A flow, with each kind of evidence for its host. */
interface Connection extends ListedFlow {
  knownBy: string;
}

/** A name with two kinds of evidence on one connection, such as CONNECT and the hello after it, is one row. */
class Connections implements TableRows<Connection> {
  readonly #flows: TableRows<ListedFlow>;
  readonly #continues: (row: number) => boolean;
  /** First row of each connection and host; null when each row is one. */
  readonly #first: Uint32Array | null;

  constructor({ flows, continuesRowBefore }: Findings['selection']) {
    this.#flows = flows;
    this.#continues = continuesRowBefore;
    const first = new Uint32Array(flows.count);
    let count = 0;
    for (let row = 0; row < flows.count; row += 1) {
      first[count] = row;
      count += continuesRowBefore(row) ? 0 : 1;
    }
    this.#first = count === flows.count ? null : first.subarray(0, count);
  }

  get count(): number {
    return this.#first?.length ?? this.#flows.count;
  }

  at(row: number): Connection {
    const first = this.#first ? this.#first[row]! : row;
    const flow = this.#flows.at(first);
    const ways = [evidenceWords[flow.evidence]!];
    for (let next = first + 1; next < this.#flows.count && this.#continues(next); next += 1)
      ways.push(evidenceWords[this.#flows.at(next).evidence]!);
    return { ...flow, knownBy: ways.join(', ') };
  }

  weight(row: number, kind: Parameters<TableRows<ListedFlow>['weight']>[1]): number {
    return this.#flows.weight(this.#first ? this.#first[row]! : row, kind);
  }

  *[Symbol.iterator](): Iterator<Connection> {
    for (let row = 0; row < this.count; row += 1) yield this.at(row);
  }
}

function flowCells(flow: Connection): string[] {
  const transport = transportName(flow.protocol);
  return [
    endText(flow.client),
    endText(flow.server),
    flow.tunnel ? `${transport} in ${flow.tunnel}` : transport,
    flow.host ?? flow.name,
    flow.knownBy,
    formatAmount(flow.clientBytes, 'B'),
    formatAmount(flow.serverBytes, 'B'),
    formatCount(flow.clientPackets + flow.serverPackets),
  ];
}

const dnsColumns: Column[] = [
  { title: 'client', shrinksTo: 12 },
  { title: 'name', style: 'name', shrinksTo: 16, keepsEnd: true },
  { title: 'addresses', shrinksTo: 16 },
  { title: 'asked', style: 'quiet' },
];

/** Answers have no size, so they keep their order, unless they are sorted by name. */
function* answerLines(answers: AnswerLog, query: ReadQuery, look: TextLook): Generator<string> {
  const wanted = query.top === 0 ? answers.count : Math.min(query.top, answers.count);
  let shown: ListedAnswer[] = [];
  for (const answer of answers.answers()) {
    if (query.sort !== 'name' && shown.length >= wanted) break;
    shown.push(answer);
    if (query.sort === 'name' && shown.length > wanted * 2 + 1000) shown = firstByName(shown, wanted);
  }
  if (query.sort === 'name') shown = firstByName(shown, wanted);
  const rows = shown.map((answer) => [
    answer.client.ip,
    answer.name,
    answer.addresses.map((one) => one.address).join(' '),
    answer.querySeen ? 'yes' : 'no question was seen',
  ]);
  yield* section('DNS answers', dnsColumns, answers.count, rows, rows.length, look);
}

function firstByName(answers: ListedAnswer[], wanted: number): ListedAnswer[] {
  return answers.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)).slice(0, wanted);
}

const hostColumns: Column[] = [
  { title: 'address', shrinksTo: 15 },
  { title: 'received', isNumber: true },
  { title: 'sent', isNumber: true },
  { title: 'packets', isNumber: true },
];

const conversationColumns: Column[] = [
  { title: 'a', shrinksTo: 15 },
  { title: 'b', shrinksTo: 15 },
  { title: 'a to b', isNumber: true },
  { title: 'b to a', isNumber: true },
  { title: 'packets', isNumber: true },
];

function* section(
  title: string,
  columns: Column[],
  count: number,
  rows: Iterable<string[]>,
  shown: number,
  look: TextLook,
): Generator<string> {
  if (count === 0) return;
  const left = count - shown;
  yield '';
  yield paint(title, 'strong', look) +
    (left > 0 ? paint(`  ${formatCount(shown)} of ${formatCount(count)}`, 'quiet', look) : '');
  yield* renderTable(columns, rows, look);
  if (left > 0) yield paint(`… ${formatCount(left)} more (--top 0 or --json lists all)`, 'quiet', look);
}

function endText(end: { ip: string; port: number | null }): string {
  if (end.port === null) return end.ip;
  return end.ip.includes(':') ? `[${end.ip}]:${end.port}` : `${end.ip}:${end.port}`;
}

function formatDuration(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 3 : 1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

/** Up to this many rows are selected in one pass; for more, all rows are sorted. */
const onePassMax = 1000;

/** Numbers of the first `top` rows in this order; 0 for all. Rows of equal weight keep their order. */
function chooseRows<T>(
  rows: TableRows<T>,
  sort: SortOrder,
  top: number,
  nameOf: (row: T) => string,
): ArrayLike<number> & Iterable<number> {
  const { count } = rows;
  const wanted = top === 0 ? count : Math.min(top, count);
  if (sort === 'time') return Uint32Array.from({ length: wanted }, (_, row) => row);
  if (sort === 'name') {
    const isBefore = (a: string, b: string) => a < b;
    return best(count, wanted, (row) => nameOf(rows.at(row)), isBefore);
  }
  const isBefore = (a: number, b: number) => a > b;
  return best(count, wanted, (row) => rows.weight(row, sort), isBefore);
}

function best<K>(
  count: number,
  wanted: number,
  keyOf: (row: number) => K,
  isBefore: (a: K, b: K) => boolean,
) {
  if (wanted > onePassMax) {
    const keys = Array.from({ length: count }, (_, row) => keyOf(row));
    const order = Uint32Array.from({ length: count }, (_, row) => row);
    order.sort((a, b) => (isBefore(keys[a]!, keys[b]!) ? -1 : isBefore(keys[b]!, keys[a]!) ? 1 : a - b));
    return order.subarray(0, wanted);
  }
  const keys: K[] = [];
  const chosen: number[] = [];
  for (let row = 0; row < count; row += 1) {
    const key = keyOf(row);
    if (chosen.length === wanted && (wanted === 0 || !isBefore(key, keys[wanted - 1]!))) continue;
    let at = chosen.length;
    while (at > 0 && isBefore(key, keys[at - 1]!)) at -= 1;
    keys.splice(at, 0, key);
    chosen.splice(at, 0, row);
    if (chosen.length > wanted) {
      keys.pop();
      chosen.pop();
    }
  }
  return chosen;
}

// Applications for the tables: traffic without a name is listed under the service of its port, as on the monitor, for
// every remote address.

/** The same rows, with the rows of each service added up, the largest first. */
export function applicationsByService(rows: ApplicationRows): TableRows<ListedApplication> {
  /** Sums by protocol and port, null where the port has no service. */
  const services = new Map<number, ListedApplication | null>();
  // There may be millions of others, so only their numbers are kept and they are not formatted.
  const others = new Uint32Array(rows.count);
  let otherCount = 0;
  for (let row = 0; row < rows.count; row += 1) {
    const { words, sums, at } = rows.raw(row);
    const key = (words[at + ApplicationRow.meta]! & 0xff) * 65_536 + words[at + ApplicationRow.serverPort]!;
    const isNamed = words[at + ApplicationRow.name]! >= 0;
    const sum = isNamed ? null : services.get(key);
    if (sum) {
      sum.inboundBytes += sums[at >> 1]!;
      sum.outboundBytes += sums[(at >> 1) + 1]!;
      sum.packets += sums[(at >> 1) + 2]!;
    } else if (sum === null || !startService(rows.at(row), key)) {
      others[otherCount] = row;
      otherCount += 1;
    }
  }

  /** True when the row is the first of a service. */
  function startService(first: ListedApplication, key: number): boolean {
    const name = serviceName(first.protocol, first.serverPort);
    services.set(key, name === null ? null : { ...first, name });
    return name !== null;
  }

  const named = [...services.values()].filter((sum) => sum !== null);
  const at = (row: number) => (row < named.length ? named[row]! : rows.at(others[row - named.length]!));
  return {
    count: named.length + otherCount,
    at,
    weight: (row, kind) =>
      row < named.length ? weightOf(named[row]!, kind) : rows.weight(others[row - named.length]!, kind),
    *[Symbol.iterator]() {
      for (let row = 0; row < named.length + otherCount; row += 1) yield at(row);
    },
  };
}

function weightOf({ inboundBytes, outboundBytes, packets }: ListedApplication, kind: RowWeight): number {
  if (kind === 'packets') return packets;
  if (kind === 'bytes') return inboundBytes + outboundBytes;
  return kind === 'sent' ? outboundBytes : inboundBytes;
}
