/**
 * The JSON of `sensor read --json`. Fields are part of what programs rely on: add, never rename.
 *
 * Rows are written one by one as text, one a line: neither the document nor its objects would fit into memory.
 */
import type { ListedApplication, ListedFlow } from '#sensor/capture/index.ts';
import { formatInstant, formatMinute } from './instants.ts';
import type { Findings } from './read.ts';

import type { TextOutput } from './text-output.ts';
import { transportName } from './transport-names.ts';

/** The whole document. */
export function writeJson(out: TextOutput, { facts, result, answers, selection, minutes }: Findings): void {
  const { totals } = result;
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
  out.write(`{\n"capture": ${JSON.stringify(capture)}`);
  writeRows(out, 'flows', selection.flows, flowJson);
  writeAnswers(out, answers.pieces());
  writeRows(
    out,
    'hosts',
    selection.hosts,
    (host) =>
      `{"ip":"${host.address}","rx_bytes":${host.rxBytes},"tx_bytes":${host.txBytes},"packets":${host.packets}}`,
  );
  writeRows(
    out,
    'conversations',
    selection.conversations,
    (pair) =>
      `{"a":"${pair.a}","b":"${pair.b}","packets_a_to_b":${pair.packetsAToB},"bytes_a_to_b":${pair.bytesAToB},"packets_b_to_a":${pair.packetsBToA},"bytes_b_to_a":${pair.bytesBToA}}`,
  );
  writeRows(out, 'applications', result.applications, applicationJson);
  if (minutes) {
    writeRows(
      out,
      'minutes',
      minutes.rows(),
      (one) =>
        `{"minute":"${formatMinute(one.minute)}","packets":${one.packets},"bytes":${one.bytes},"parser_dropped":${one.parserDropped}}`,
    );
  }
  out.write('\n}\n');
}

function writeRows<T>(out: TextOutput, name: string, rows: Iterable<T>, toJson: (row: T) => string): void {
  out.write(`,\n"${name}": [`);
  let before = '\n  ';
  for (const row of rows) {
    out.write(before + toJson(row));
    before = ',\n  ';
  }
  out.write(before === '\n  ' ? ']' : '\n]');
}

/** Lines that are JSON already; a piece may begin and end in the middle of one. */
function writeAnswers(out: TextOutput, pieces: Iterable<string>): void {
  out.write(',\n"dns": [');
  let isFirst = true;
  // The last line feed waits for a line behind it, which is separated by a comma.
  let waits = false;
  for (const piece of pieces) {
    if (piece === '') continue;
    const endsLine = piece.endsWith('\n');
    const text = (endsLine ? piece.slice(0, -1) : piece).replaceAll('\n', ',\n  ');
    out.write((isFirst ? '\n  ' : waits ? ',\n  ' : '') + text);
    isFirst = false;
    waits = endsLine;
  }
  out.write(isFirst ? ']' : '\n]');
}

/** Addresses, hosts and tunnels hold nothing that JSON would escape: names are checked when they are read. */
function flowJson(flow: ListedFlow): string {
  const { client, server } = flow;
  return (
    `{"transport":"${transportName(flow.protocol)}","client":{"ip":"${client.ip}","port":${client.port}},` +
    `"server":{"ip":"${server.ip}","port":${server.port}},"host":${flow.host === null ? 'null' : `"${flow.host}"`},` +
    `"name":"${flow.name}","evidence":"${flow.evidence}","tunnel":${flow.tunnel === null ? 'null' : `"${flow.tunnel}"`},` +
    `"client_packets":${flow.clientPackets},"client_bytes":${flow.clientBytes},` +
    `"server_packets":${flow.serverPackets},"server_bytes":${flow.serverBytes}}`
  );
}

function applicationJson(one: ListedApplication): string {
  return (
    `{"name":"${one.name}","transport":"${transportName(one.protocol)}","server_port":${one.serverPort},` +
    `"inbound_bytes":${one.inboundBytes},"outbound_bytes":${one.outboundBytes}}`
  );
}
