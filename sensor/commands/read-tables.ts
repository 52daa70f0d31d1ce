/**
 * `sensor read` for people: a summary and short tables, the largest first.
 */
import type { ListedFlow, ReadingResult } from '#sensor/capture/index.ts';
import { type FileFacts, formatInstant, sumApplications, transportName } from './read-json.ts';

const rowsMax = 30;

/** The whole text, with a final line feed. */
export function renderTables(facts: FileFacts, result: ReadingResult): string {
  const { totals } = result;
  const span = facts.firstAt ? `  ${formatInstant(facts.firstAt)} to ${formatInstant(facts.lastAt)}` : '';
  const sections = [
    `${count(totals.packets)} packets, ${formatBytes(totals.ipBytes)} of IP${span}`,
    `${count(totals.ipPackets)} IP, ${count(totals.nonIpPackets)} not IP, ${count(totals.parserDropped)} malformed or cut`,
    ...section('Applications', ['name', 'transport', 'port', 'in', 'out'], 3, applicationRows(result)),
    ...section(
      'Flows',
      ['client', 'server', 'transport', 'name', 'evidence', 'sent', 'received'],
      5,
      flowRows(result),
    ),
    ...section('DNS answers', ['client', 'name', 'addresses', 'asked'], 9, dnsRows(result)),
    ...section('Hosts', ['address', 'received', 'sent', 'packets'], 1, hostRows(result)),
  ];
  return `${sections.join('\n')}\n`;
}

function applicationRows(result: ReadingResult): string[][] {
  return sumApplications(result.usage).map((one) => [
    one.name,
    one.transport,
    one.server_port === null ? '' : String(one.server_port),
    formatBytes(one.inbound_bytes),
    formatBytes(one.outbound_bytes),
  ]);
}

function flowRows(result: ReadingResult): string[][] {
  const bytes = (flow: ListedFlow) => flow.clientBytes + flow.serverBytes;
  return [...result.flows]
    .sort((a, b) => bytes(b) - bytes(a))
    .map((flow) => [
      endText(flow.client),
      endText(flow.server),
      flow.tunnel ? `${transportName(flow.protocol)} in ${flow.tunnel}` : transportName(flow.protocol),
      flow.host ?? flow.name,
      flow.evidence === 'none' ? '' : flow.evidence,
      formatBytes(flow.clientBytes),
      formatBytes(flow.serverBytes),
    ]);
}

function dnsRows(result: ReadingResult): string[][] {
  return result.answers.map((answer) => [
    answer.client.ip,
    answer.name,
    answer.addresses.map((one) => one.address).join(' '),
    answer.querySeen ? 'yes' : 'no',
  ]);
}

function hostRows(result: ReadingResult): string[][] {
  return [...result.hosts]
    .sort((a, b) => b.rxBytes + b.txBytes - a.rxBytes - a.txBytes)
    .map((host) => [host.address, formatBytes(host.rxBytes), formatBytes(host.txBytes), count(host.packets)]);
}

function endText(end: { ip: string; port: number | null }): string {
  if (end.port === null) return end.ip;
  return end.ip.includes(':') ? `[${end.ip}]:${end.port}` : `${end.ip}:${end.port}`;
}

/** A title and aligned columns; numbers, from column `numbersFrom` on, stand on the right. */
function section(title: string, header: string[], numbersFrom: number, rows: string[][]): string[] {
  if (rows.length === 0) return [];
  const shown = rows.slice(0, rowsMax);
  const widths = header.map((name, i) => Math.max(name.length, ...shown.map((row) => row[i]!.length)));
  const line = (row: string[]) =>
    row
      .map((cell, i) => (i >= numbersFrom ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  const more =
    rows.length > shown.length ? [`… ${count(rows.length - shown.length)} more (--json lists all)`] : [];
  return ['', title, line(header), ...shown.map(line), ...more];
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
