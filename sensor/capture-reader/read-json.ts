/**
 * The JSON of `sensor read --json`. Programs rely on the fields: add fields, never rename them.
 *
 * Rows are written one per line, directly from their stored words: the document and its objects would not fit into
 * memory, and strings would cost more than finding the rows. Addresses, hosts and labels contain nothing that JSON
 * escapes, because names are checked when they are read.
 */

import { transportName } from '#contracts/ip-protocols.ts';
import {
  ApplicationRow,
  FlowRow,
  keyAt,
  type ListedRows,
  type RawRow,
  type ReadingResult,
} from '#sensor/capture/index.ts';
import type { AnswerLog } from './answer-log.ts';
import { JsonBytes, type JsonText, jsonText } from './json-bytes.ts';
import type { Findings } from './read-files.ts';
import { formatInstant, formatMinute, type TextOutput } from './text-output.ts';

const text = {
  a: jsonText('{"a":"'),
  b: jsonText('","b":"'),
  brace: jsonText('}'),
  bytesAToB: jsonText(',"bytes_a_to_b":'),
  bytesBToA: jsonText(',"bytes_b_to_a":'),
  clientBytes: jsonText(',"client_bytes":'),
  evidence: jsonText('","evidence":"'),
  firstRow: jsonText('\n  '),
  host: jsonText('},"host":"'),
  inboundBytes: jsonText(',"inbound_bytes":'),
  ip: jsonText('{"ip":"'),
  name: jsonText('{"name":"'),
  nameBehindHost: jsonText('","name":"'),
  nextRow: jsonText(',\n  '),
  noHost: jsonText('},"host":null,"name":"'),
  noTunnel: jsonText('","tunnel":null,"client_packets":'),
  null: jsonText('null'),
  outboundBytes: jsonText(',"outbound_bytes":'),
  packets: jsonText(',"packets":'),
  packetsAToB: jsonText('","packets_a_to_b":'),
  packetsBToA: jsonText(',"packets_b_to_a":'),
  packetsBehindTunnel: jsonText('","client_packets":'),
  port: jsonText('","port":'),
  rxBytes: jsonText('","rx_bytes":'),
  server: jsonText('},"server":{"ip":"'),
  serverBytes: jsonText(',"server_bytes":'),
  serverPackets: jsonText(',"server_packets":'),
  serverPort: jsonText('","server_port":'),
  transport: jsonText('","transport":"'),
  tunnel: jsonText('","tunnel":"'),
  txBytes: jsonText(',"tx_bytes":'),
};

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
  writeAnswers(json, answers);
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
    json.put(row === 0 ? text.firstRow : text.nextRow);
    write(row);
    json.endRow();
  }
  json.ascii(count === 0 ? ']' : '\n]');
}

/** Copies rows that are JSON already, with their separators. */
function writeAnswers(json: JsonBytes, answers: AnswerLog): void {
  json.text(',\n"dns": [');
  if (answers.count > 0) json.ascii('\n  ');
  for (const piece of answers.pieces()) if (piece.length > 0) json.raw(piece);
  json.ascii(answers.count > 0 ? '\n]' : ']');
}

function flowWriter(json: JsonBytes, rows: ListedRows<unknown>, flows: ReadingResult['flows']) {
  const starts = new TextCache((protocol) => `{"transport":"${transportName(protocol)}","client":{"ip":"`);
  return (row: number): void => {
    const { words, sums, at } = rows.raw(row);
    const meta = words[at + FlowRow.meta]!;
    const version = (meta >> 8) & 0xff;
    const hasPorts = flows.hasPorts(words, at);
    const ports = words[at + FlowRow.ports]!;
    json.put(starts.of(meta & 0xff)).address(version, words, at + FlowRow.client);
    writePort(json.put(text.port), hasPorts, ports >>> 16);
    json.put(text.server).address(version, words, at + FlowRow.server);
    writePort(json.put(text.port), hasPorts, ports & 0xffff);
    const host = flows.host(words, at);
    if (host === null) json.put(text.noHost);
    else json.put(text.host).ascii(host).put(text.nameBehindHost);
    const name = flows.name(words, at);
    if (name === null) json.address(version, words, at + FlowRow.server);
    else json.ascii(name);
    json.put(text.evidence).ascii(flows.evidence(words, at));
    const tunnel = flows.tunnel(words, at);
    if (tunnel === null) json.put(text.noTunnel);
    else json.put(text.tunnel).ascii(tunnel).put(text.packetsBehindTunnel);
    const sum = (at + FlowRow.bytes) >> 1;
    json
      .number(words[at + FlowRow.packets]!)
      .put(text.clientBytes)
      .number(sums[sum]!);
    json.put(text.serverPackets).number(words[at + FlowRow.packets + 1]!);
    json
      .put(text.serverBytes)
      .number(sums[sum + 1]!)
      .put(text.brace);
  };
}

function writePort(json: JsonBytes, hasPorts: boolean, port: number): void {
  if (hasPorts) json.number(port);
  else json.put(text.null);
}

function writeHost(json: JsonBytes, { words, sums, at }: RawRow): void {
  const key = at + keyAt(3);
  const sum = at >> 1;
  json.put(text.ip).address(words[key + 4]!, words, key);
  json.put(text.rxBytes).number(sums[sum]!);
  json.put(text.txBytes).number(sums[sum + 1]!);
  json
    .put(text.packets)
    .number(sums[sum + 2]!)
    .put(text.brace);
}

function writeConversation(json: JsonBytes, { words, sums, at }: RawRow): void {
  const key = at + keyAt(4);
  const sum = at >> 1;
  const version = words[key + 8]!;
  json.put(text.a).address(version, words, key);
  json.put(text.b).address(version, words, key + 4);
  json.put(text.packetsAToB).number(sums[sum]!);
  json.put(text.bytesAToB).number(sums[sum + 1]!);
  json.put(text.packetsBToA).number(sums[sum + 2]!);
  json
    .put(text.bytesBToA)
    .number(sums[sum + 3]!)
    .put(text.brace);
}

function writeApplication(json: JsonBytes, applications: ReadingResult['applications'], row: number): void {
  const { words, sums, at } = applications.raw(row);
  const meta = words[at + ApplicationRow.meta]!;
  const port = words[at + ApplicationRow.serverPort]!;
  const sum = at >> 1;
  const name = applications.name(words, at);
  json.put(text.name);
  if (name === null) json.address(meta >> 8, words, at + ApplicationRow.address);
  else json.ascii(name);
  json.put(text.transport).ascii(transportName(meta & 0xff));
  writePort(json.put(text.serverPort), port > 0, port);
  json.put(text.inboundBytes).number(sums[sum]!);
  json
    .put(text.outboundBytes)
    .number(sums[sum + 1]!)
    .put(text.brace);
}

/** Text of protocols, created once. */
class TextCache {
  readonly #make: (protocol: number) => string;
  readonly #texts: (JsonText | null)[] = new Array(256).fill(null);

  constructor(make: (protocol: number) => string) {
    this.#make = make;
  }

  of(protocol: number): JsonText {
    const known = this.#texts[protocol]!;
    if (known !== null) return known;
    const made = jsonText(this.#make(protocol));
    this.#texts[protocol] = made;
    return made;
  }
}
