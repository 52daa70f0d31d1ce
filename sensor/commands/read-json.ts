/**
 * The JSON of `sensor read --json`. Fields are part of what programs rely on: add, never rename.
 *
 * Rows are written one by one, one a line, from the words in which they are kept: neither the document nor its objects
 * would fit into memory, and strings would cost more than finding the rows. Addresses, hosts and labels hold nothing
 * that JSON would escape: names are checked when they are read.
 */
import {
  ApplicationRow,
  FlowRow,
  keyAt,
  type ListedRows,
  type RawRow,
  type ReadingResult,
} from '#sensor/capture/index.ts';
import { formatInstant, formatMinute } from './instants.ts';
import { JsonBytes } from './json-bytes.ts';
import type { Findings } from './read.ts';
import type { TextOutput } from './text-output.ts';
import { transportName } from './transport-names.ts';

/** The whole document. */
export function writeJson(out: TextOutput, { facts, result, answers, selection, minutes }: Findings): void {
  const { totals } = result;
  const json = new JsonBytes((bytes) => out.writeBytes(bytes));
  const capture = {
    packets: totals.packets,
    bytes: totals.ipBytes,
    ip_packets: totals.ipPackets,
    non_ip: totals.nonIpPackets,
    parser_dropped: totals.parserDropped,
    first_at: formatInstant(facts.firstAt),
    last_at: formatInstant(facts.lastAt),
    link_type: facts.linkType,
  };
  json.text(`{\n"capture": ${JSON.stringify(capture)}`);
  writeRows(json, 'flows', selection.flows.count, flowWriter(json, selection.flows, result.flows));
  writeAnswers(json, answers.pieces());
  writeRows(json, 'hosts', selection.hosts.count, (row) => writeHost(json, selection.hosts.raw(row)));
  writeRows(json, 'conversations', selection.conversations.count, (row) =>
    writeConversation(json, selection.conversations.raw(row)),
  );
  writeRows(json, 'applications', result.applications.count, (row) =>
    writeApplication(json, result.applications, row),
  );
  if (minutes) {
    const rows = minutes.rows();
    writeRows(json, 'minutes', rows.length, (row) => {
      const one = rows[row]!;
      json.ascii('{"minute":').quoted(formatMinute(one.minute));
      json.ascii(',"packets":').number(one.packets).ascii(',"bytes":').number(one.bytes);
      json.ascii(',"parser_dropped":').number(one.parserDropped).ascii('}');
    });
  }
  json.text('\n}\n');
}

function writeRows(json: JsonBytes, name: string, count: number, write: (row: number) => void): void {
  json.text(`,\n"${name}": [`);
  for (let row = 0; row < count; row += 1) {
    json.ascii(row === 0 ? '\n  ' : ',\n  ');
    write(row);
    json.endRow();
  }
  json.ascii(count === 0 ? ']' : '\n]');
}

/** Lines that are JSON already; a piece may begin and end in the middle of one. */
function writeAnswers(json: JsonBytes, pieces: Iterable<string>): void {
  json.text(',\n"dns": [');
  let isFirst = true;
  // The last line feed waits for a line behind it, which is separated by a comma.
  let waits = false;
  for (const piece of pieces) {
    if (piece === '') continue;
    const endsLine = piece.endsWith('\n');
    const text = (endsLine ? piece.slice(0, -1) : piece).replaceAll('\n', ',\n  ');
    json.text((isFirst ? '\n  ' : waits ? ',\n  ' : '') + text);
    isFirst = false;
    waits = endsLine;
  }
  json.ascii(isFirst ? ']' : '\n]');
}

function flowWriter(json: JsonBytes, rows: ListedRows<unknown>, flows: ReadingResult['flows']) {
  return (row: number): void => {
    const { words, sums, at } = rows.raw(row);
    const meta = words[at + FlowRow.meta]!;
    const version = (meta >> 8) & 0xff;
    const hasPorts = flows.hasPorts(words, at);
    const ports = words[at + FlowRow.ports]!;
    json
      .ascii('{"transport":"')
      .ascii(transportName(meta & 0xff))
      .ascii('","client":{"ip":"');
    json.address(version, words, at + FlowRow.client);
    writePort(json.ascii('","port":'), hasPorts, ports >>> 16);
    json.ascii('},"server":{"ip":"').address(version, words, at + FlowRow.server);
    writePort(json.ascii('","port":'), hasPorts, ports & 0xffff);
    json.ascii('},"host":').quoted(flows.host(words, at)).ascii(',"name":"');
    const name = flows.name(words, at);
    if (name === null) json.address(version, words, at + FlowRow.server);
    else json.ascii(name);
    json.ascii('","evidence":"').ascii(flows.evidence(words, at));
    json.ascii('","tunnel":').quoted(flows.tunnel(words, at));
    const sum = (at + FlowRow.bytes) >> 1;
    json.ascii(',"client_packets":').number(words[at + FlowRow.packets]!);
    json.ascii(',"client_bytes":').number(sums[sum]!);
    json.ascii(',"server_packets":').number(words[at + FlowRow.packets + 1]!);
    json
      .ascii(',"server_bytes":')
      .number(sums[sum + 1]!)
      .ascii('}');
  };
}

function writePort(json: JsonBytes, hasPorts: boolean, port: number): void {
  if (hasPorts) json.number(port);
  else json.ascii('null');
}

function writeHost(json: JsonBytes, { words, sums, at }: RawRow): void {
  const key = at + keyAt(3);
  const sum = at >> 1;
  json.ascii('{"ip":"').address(words[key + 4]!, words, key);
  json
    .ascii('","rx_bytes":')
    .number(sums[sum]!)
    .ascii(',"tx_bytes":')
    .number(sums[sum + 1]!);
  json
    .ascii(',"packets":')
    .number(sums[sum + 2]!)
    .ascii('}');
}

function writeConversation(json: JsonBytes, { words, sums, at }: RawRow): void {
  const key = at + keyAt(4);
  const sum = at >> 1;
  const version = words[key + 8]!;
  json
    .ascii('{"a":"')
    .address(version, words, key)
    .ascii('","b":"')
    .address(version, words, key + 4);
  json
    .ascii('","packets_a_to_b":')
    .number(sums[sum]!)
    .ascii(',"bytes_a_to_b":')
    .number(sums[sum + 1]!);
  json
    .ascii(',"packets_b_to_a":')
    .number(sums[sum + 2]!)
    .ascii(',"bytes_b_to_a":')
    .number(sums[sum + 3]!);
  json.ascii('}');
}

function writeApplication(json: JsonBytes, applications: ReadingResult['applications'], row: number): void {
  const { words, sums, at } = applications.raw(row);
  const meta = words[at + ApplicationRow.meta]!;
  const port = words[at + ApplicationRow.serverPort]!;
  const sum = at >> 1;
  const name = applications.name(words, at);
  json.ascii('{"name":"');
  if (name === null) json.address(meta >> 8, words, at + ApplicationRow.address);
  else json.ascii(name);
  json.ascii('","transport":"').ascii(transportName(meta & 0xff));
  writePort(json.ascii('","server_port":'), port > 0, port);
  json
    .ascii(',"inbound_bytes":')
    .number(sums[sum]!)
    .ascii(',"outbound_bytes":')
    .number(sums[sum + 1]!)
    .ascii('}');
}
