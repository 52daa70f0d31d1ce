import type { IdentityUse, MinuteRow } from '#operations/protect/index.ts';

/** Exact values; an empty cell was not observed. */
export function minutesCsv(minutes: readonly MinuteRow[]): string {
  return toCsv(
    [
      ...['timestamp', 'address', 'inbound_bytes', 'outbound_bytes', 'packets_per_second', 'coverage'],
      ...['expected_bps', 'expected_pps', 'attack_bps', 'attack_pps', 'reason'],
    ],
    minutes.map((row) => [
      row.minute.toISOString(),
      row.address,
      row.inboundBytes,
      row.outboundBytes,
      row.pps,
      row.coverage,
      row.expectedBps,
      row.expectedPps,
      row.ddosBps,
      row.ddosPps,
      row.reason,
    ]),
  );
}

export function applicationsCsv(applications: readonly IdentityUse[]): string {
  return toCsv(
    ['name', 'transport', 'server_port', 'inbound_bytes', 'outbound_bytes', 'last_sent_at'],
    applications.map((row) => [
      row.name,
      row.transport,
      row.serverPort,
      row.inboundBytes,
      row.outboundBytes,
      row.lastSentAt.toISOString(),
    ]),
  );
}

/** Rows of one kind; the names of the first are the header. */
export function ranksCsv(rows: readonly Record<string, Cell>[]): string {
  return toCsv(
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
  );
}

type Cell = string | number | null;

function toCsv(header: readonly string[], rows: readonly Cell[][]): string {
  return [header, ...rows].map((row) => `${row.map(toCell).join(',')}\r\n`).join('');
}

function toCell(value: Cell): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  // A spreadsheet runs what begins like a formula, and names come from what strangers sent over the network.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
