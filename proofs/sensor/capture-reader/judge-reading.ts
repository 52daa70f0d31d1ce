/** Checks the output of `sensor read` for a broken file, as far as possible without reading the file. */
import type { ReadOptions } from '#sensor/capture-reader/index.ts';
import type { SeedFile } from '#sensor/testing/file-mutations.ts';
import type { PrintedReading } from '#sensor/testing/read-in-process.ts';

/** The error in the output, or null. */
export function judgeReading(
  { status, stdout, stderr }: PrintedReading,
  asked: ReadOptions,
  file: SeedFile,
): string | null {
  if (status === 2)
    return stdout === '' && stderr !== '' ? null : 'it printed something and refused the file';
  if (status !== 0) return `exit code ${status}`;
  const counted = asked.json ? countsOfJson(stdout, stderr, asked) : countsOfTables(stdout);
  if (typeof counted === 'string') return counted;
  const { packets, ip, nonIp, dropped } = counted;
  if (packets !== ip + nonIp + dropped) return `${packets} packets are not ${ip} + ${nonIp} + ${dropped}`;
  // A packet needs at least 16 bytes in a file, except in a compressed one.
  const isPacked = /gzip|zstd/.test(file.format);
  if (!isPacked && packets * 16 > file.bytes.length)
    return `${packets} packets in ${file.bytes.length} bytes`;
  return null;
}

interface Counts {
  packets: number;
  ip: number;
  nonIp: number;
  dropped: number;
}

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(\d{3})?Z$/;

function countsOfJson(stdout: string, stderr: string, asked: ReadOptions): Counts | string {
  let document: Record<string, { [field: string]: unknown }[]> & { capture: Record<string, number> };
  try {
    document = JSON.parse(stdout);
  } catch (error) {
    return `the JSON does not parse: ${(error as Error).message}`;
  }
  const { capture } = document;
  const lists = [
    'flows',
    'dns',
    'hosts',
    'conversations',
    'applications',
    ...(asked.minutes ? ['minutes'] : []),
  ];
  for (const list of lists) if (!Array.isArray(document[list])) return `the JSON has no ${list}`;
  const times = [capture.first_at, capture.last_at] as unknown[];
  // Packets without a time have none, and are in no minute.
  const isTimed = times.every((time) => timePattern.test(String(time)));
  if (capture.packets! > 0 && !isTimed && !times.every((time) => time === null))
    return `times ${times.join(', ')}`;
  const sum = (list: string, field: string) =>
    document[list]!.reduce((total, row) => total + (row[field] as number), 0);
  const untimed = Number(/(\d+) packets have no time/.exec(stderr)?.[1] ?? 0);
  if (asked.minutes && sum('minutes', 'packets') + untimed !== capture.packets)
    return 'the minutes are not the whole';
  const isWhole = !asked.name && !asked.port;
  if (
    isWhole &&
    sum('applications', 'inbound_bytes') + sum('applications', 'outbound_bytes') !== capture.bytes
  )
    return 'the applications are not complete';
  if (
    isWhole &&
    sum('conversations', 'bytes_a_to_b') + sum('conversations', 'bytes_b_to_a') !== capture.bytes
  )
    return 'the conversations are not complete';
  return {
    packets: capture.packets!,
    ip: capture.ip_packets!,
    nonIp: capture.non_ip!,
    dropped: capture.parser_dropped!,
  };
}

function countsOfTables(stdout: string): Counts | string {
  const lines = stdout.split('\n');
  const numbers = (line: string | undefined) =>
    [...(line ?? '').matchAll(/[\d,]+(?= (?:packets|IP|not IP|malformed))/g)].map(([text]) =>
      Number(text.replaceAll(',', '')),
    );
  const [packets] = numbers(lines[0]);
  const [ip, nonIp, dropped] = numbers(lines.find((line) => line.endsWith('malformed or truncated')));
  if (packets === undefined || ip === undefined || nonIp === undefined || dropped === undefined)
    return `no summary: ${lines.slice(0, 3).join(' / ')}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no control character from a file may reach a terminal.
  if (/[\u0000-\u0009\u000b-\u001f\u007f]/.test(stdout)) return 'a control character was printed';
  if (/NaN|undefined|Infinity|\[object/.test(stdout)) return 'a value has no text';
  return { packets, ip, nonIp, dropped };
}
