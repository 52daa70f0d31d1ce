/**
 * `sensor read` for people: what the capture is in a few sentences, then short tables, the largest first.
 */
import type { ListedFlow, ReadingResult } from '#sensor/capture/index.ts';
import {
  type FileFacts,
  formatInstant,
  type MinuteTotals,
  sumApplications,
  transportName,
} from './read-json.ts';
import type { ReadQuery } from './read-query.ts';
import { type Column, formatAmount, formatCount, paint, renderTable, type TextLook } from './text-table.ts';

export interface TablesInput {
  facts: FileFacts;
  /** With the rows that are to be shown. */
  result: ReadingResult;
  /** Null where they were not asked for. */
  minutes: readonly MinuteTotals[] | null;
  /** Flows before a filter, null without one. */
  allFlows: number | null;
}

/** What rows are ordered by. */
interface Weights {
  bytes: number;
  packets: number;
  sent: number;
  received: number;
  name: string;
}

const barMax = 24;

/** The whole text, with a final line feed. */
export function renderTables(input: TablesInput, query: ReadQuery, look: TextLook): string {
  const { result } = input;
  const show = (title: string, columns: Column[], rows: { cells: string[]; weights: Weights }[]) =>
    section(title, columns, rows, query, look);
  const lines = [
    ...summary(input, look),
    ...(input.minutes ? minuteLines(input.minutes, look) : []),
    ...show('Applications', applicationColumns, applicationRows(result)),
    ...show('Flows', flowColumns, flowRows(result.flows)),
    ...show('DNS answers', dnsColumns, dnsRows(result)),
    ...show('Hosts', hostColumns, hostRows(result)),
    ...show('Conversations', conversationColumns, conversationRows(result)),
  ];
  return `${lines.join('\n')}\n`;
}

function summary({ facts, result, allFlows }: TablesInput, look: TextLook): string[] {
  const { totals } = result;
  const lines = [
    paint(
      `${formatCount(totals.packets)} packets, ${formatAmount(totals.ipBytes, 'B')} of IP`,
      'strong',
      look,
    ),
  ];
  if (facts.firstAt && facts.lastAt) {
    const seconds =
      facts.lastAt.seconds -
      facts.firstAt.seconds +
      (facts.lastAt.nanoseconds - facts.firstAt.nanoseconds) / 1e9;
    const rate = seconds > 0 ? `, ${formatAmount((totals.ipBytes * 8) / seconds, 'bit/s')} on average` : '';
    lines.push(
      `${formatInstant(facts.firstAt)} to ${formatInstant(facts.lastAt)}: ${formatDuration(seconds)}${rate}`,
    );
  }
  const { ipPackets, nonIpPackets, parserDropped } = totals;
  lines.push(
    `${formatCount(ipPackets)} IP, ${formatCount(nonIpPackets)} not IP, ${formatCount(parserDropped)} malformed or cut`,
  );
  const warn = (text: string) => lines.push(paint(text, 'warn', look));
  if (parserDropped > 0) {
    const share = ((parserDropped / totals.packets) * 100).toPrecision(2);
    warn(`${share} % of the packets could not be taken apart: their bytes are in no table.`);
  }
  if (facts.cutFrames > 0) {
    warn(
      `${formatCount(facts.cutFrames)} ${facts.cutFrames === 1 ? 'packet was' : 'packets were'} stored cut to at most ${facts.snapLength} bytes: bytes are true, names may be missing.`,
    );
  }
  if (allFlows !== null) {
    const bytes = result.flows.reduce((sum, flow) => sum + bytesOf(flow), 0);
    lines.push(
      `${formatCount(result.flows.length)} of ${formatCount(allFlows)} flows match, ${formatAmount(bytes, 'B')}; the lines above count everything`,
    );
  }
  return lines;
}

function minuteLines(minutes: readonly MinuteTotals[], look: TextLook): string[] {
  const most = Math.max(1, ...minutes.map((one) => one.bytes));
  const columns: Column[] = [
    { title: 'minute (UTC)' },
    { title: 'packets', isNumber: true },
    { title: 'bytes', isNumber: true },
    { title: 'bit/s', isNumber: true },
    { title: 'malformed', isNumber: true },
    { title: '', style: 'name', shrinksTo: 4 },
  ];
  const rows = minutes.map((one) => [
    new Date(one.minute * 1000).toISOString().slice(0, 16).replace('T', ' '),
    formatCount(one.packets),
    formatAmount(one.bytes, 'B'),
    formatAmount((one.bytes * 8) / 60, 'bit/s'),
    one.parserDropped === 0 ? '' : formatCount(one.parserDropped),
    '▆'.repeat(Math.ceil((one.bytes / most) * barMax)),
  ]);
  return ['', paint('Minutes', 'strong', look), ...renderTable(columns, rows, look)];
}

const applicationColumns: Column[] = [
  { title: 'name', style: 'name', shrinksTo: 16, keepsEnd: true },
  { title: 'transport' },
  { title: 'port', isNumber: true },
  { title: 'in', isNumber: true },
  { title: 'out', isNumber: true },
];

function applicationRows(result: ReadingResult) {
  return sumApplications(result.usage).map((one) => ({
    cells: [
      one.name,
      one.transport,
      one.server_port === null ? '' : String(one.server_port),
      formatAmount(one.inbound_bytes, 'B'),
      formatAmount(one.outbound_bytes, 'B'),
    ],
    weights: {
      bytes: one.inbound_bytes + one.outbound_bytes,
      packets: 0,
      sent: one.outbound_bytes,
      received: one.inbound_bytes,
      name: one.name,
    },
  }));
}

const flowColumns: Column[] = [
  { title: 'client', shrinksTo: 12, keepsEnd: true },
  { title: 'server', shrinksTo: 12, keepsEnd: true },
  { title: 'transport' },
  { title: 'name', style: 'name', shrinksTo: 14, keepsEnd: true },
  { title: 'known by', style: 'quiet' },
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

const bytesOf = (flow: ListedFlow) => flow.clientBytes + flow.serverBytes;

/** A name that one connection said in two ways, such as CONNECT and the hello behind it, is one row. */
function flowRows(flows: readonly ListedFlow[]) {
  const rows: ReturnType<typeof flowRow>[] = [];
  let last: ListedFlow | null = null;
  for (const flow of flows) {
    const row = flowRow(flow);
    const before = rows.at(-1);
    if (last && before && isSameConnection(last, flow) && last.host === flow.host)
      before.cells[evidenceCell] += `, ${row.cells[evidenceCell]}`;
    else rows.push(row);
    last = flow;
  }
  return rows;
}

const evidenceCell = 4;

function isSameConnection(a: ListedFlow, b: ListedFlow): boolean {
  return (
    a.client.port === b.client.port &&
    a.server.port === b.server.port &&
    a.client.ip === b.client.ip &&
    a.server.ip === b.server.ip &&
    a.protocol === b.protocol &&
    a.tunnel === b.tunnel &&
    a.clientPackets === b.clientPackets &&
    a.clientBytes === b.clientBytes &&
    a.serverBytes === b.serverBytes &&
    a.evidence !== b.evidence
  );
}

function flowRow(flow: ListedFlow) {
  const transport = transportName(flow.protocol);
  const packets = flow.clientPackets + flow.serverPackets;
  const name = flow.host ?? flow.name;
  return {
    cells: [
      endText(flow.client),
      endText(flow.server),
      flow.tunnel ? `${transport} in ${flow.tunnel}` : transport,
      name,
      evidenceWords[flow.evidence] ?? flow.evidence,
      formatAmount(flow.clientBytes, 'B'),
      formatAmount(flow.serverBytes, 'B'),
      formatCount(packets),
    ],
    weights: { bytes: bytesOf(flow), packets, sent: flow.clientBytes, received: flow.serverBytes, name },
  };
}

const dnsColumns: Column[] = [
  { title: 'client', shrinksTo: 12 },
  { title: 'name', style: 'name', shrinksTo: 16, keepsEnd: true },
  { title: 'addresses', shrinksTo: 16 },
  { title: 'asked', style: 'quiet' },
];

function dnsRows(result: ReadingResult) {
  return result.answers.map((answer) => ({
    cells: [
      answer.client.ip,
      answer.name,
      answer.addresses.map((one) => one.address).join(' '),
      answer.querySeen ? 'yes' : 'no question was seen',
    ],
    // Answers have no size that matters; they stay in the order in which they came.
    weights: { bytes: 0, packets: 0, sent: 0, received: 0, name: answer.name },
  }));
}

const hostColumns: Column[] = [
  { title: 'address', shrinksTo: 15 },
  { title: 'received', isNumber: true },
  { title: 'sent', isNumber: true },
  { title: 'packets', isNumber: true },
];

function hostRows(result: ReadingResult) {
  return result.hosts.map((host) => ({
    cells: [
      host.address,
      formatAmount(host.rxBytes, 'B'),
      formatAmount(host.txBytes, 'B'),
      formatCount(host.packets),
    ],
    weights: {
      bytes: host.rxBytes + host.txBytes,
      packets: host.packets,
      sent: host.txBytes,
      received: host.rxBytes,
      name: host.address,
    },
  }));
}

const conversationColumns: Column[] = [
  { title: 'a', shrinksTo: 15 },
  { title: 'b', shrinksTo: 15 },
  { title: 'a to b', isNumber: true },
  { title: 'b to a', isNumber: true },
  { title: 'packets', isNumber: true },
];

function conversationRows(result: ReadingResult) {
  return result.conversations.map((pair) => ({
    cells: [
      pair.a,
      pair.b,
      formatAmount(pair.bytesAToB, 'B'),
      formatAmount(pair.bytesBToA, 'B'),
      formatCount(pair.packetsAToB + pair.packetsBToA),
    ],
    weights: {
      bytes: pair.bytesAToB + pair.bytesBToA,
      packets: pair.packetsAToB + pair.packetsBToA,
      sent: pair.bytesAToB,
      received: pair.bytesBToA,
      name: pair.a,
    },
  }));
}

function section(
  title: string,
  columns: Column[],
  rows: { cells: string[]; weights: Weights }[],
  { sort, top }: ReadQuery,
  look: TextLook,
): string[] {
  if (rows.length === 0) return [];
  const ordered =
    sort === 'time'
      ? rows
      : sort === 'name'
        ? rows.toSorted((a, b) =>
            a.weights.name < b.weights.name ? -1 : a.weights.name > b.weights.name ? 1 : 0,
          )
        : rows.toSorted((a, b) => b.weights[sort] - a.weights[sort]);
  const shown = top === 0 ? ordered : ordered.slice(0, top);
  const left = rows.length - shown.length;
  return [
    '',
    paint(title, 'strong', look) +
      (left > 0 ? paint(`  ${formatCount(shown.length)} of ${formatCount(rows.length)}`, 'quiet', look) : ''),
    ...renderTable(
      columns,
      shown.map((row) => row.cells),
      look,
    ),
    ...(left > 0 ? [paint(`… ${formatCount(left)} more (--top 0 or --json lists all)`, 'quiet', look)] : []),
  ];
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
