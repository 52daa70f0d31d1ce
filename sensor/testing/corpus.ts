/**
 * Reads the shared traffic corpus with our engine and compares it with the agreed results of two other readers.
 *
 * The corpus is not part of the product: its directory comes from `SVC_CORPUS_DIR` and may be missing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ListedAnswer, ListedEnd } from '#sensor/capture/index.ts';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { FrameReading, packetsIn } from '#sensor/capture-reader/read-frames.ts';
import { type WholeReading, wholeReading } from './captures.ts';

const projectFolder = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Directory of the corpus. */
export function corpusFolder(): string {
  return resolve(projectFolder, process.env.SVC_CORPUS_DIR ?? '../shared/corpus');
}

/** True when the corpus is present. */
export function hasCorpus(): boolean {
  return existsSync(join(corpusFolder(), 'expected.json'));
}

type ExpectedEnd = [string, number];

interface ExpectedConversation {
  a: string;
  b: string;
  bytes_a_to_b: number;
  bytes_b_to_a: number;
  packets_a_to_b: number;
  packets_b_to_a: number;
}

interface ExpectedFlow {
  client: ExpectedEnd;
  server: ExpectedEnd;
  transport: string;
  kind: string;
  name: string;
  tunnel?: string;
  cname_chain?: string[];
  addresses?: { address: string; ttl: number }[];
  query_seen?: boolean;
}

/** Expected facts of one capture. */
export interface ExpectedFile {
  file: string;
  packets: number;
  ip: { packets: number; bytes: number; disputed_frames?: number[]; not_counted_packets: number };
  conversations: ExpectedConversation[];
  conversations_omitted?: [string, string][];
  flows: ExpectedFlow[];
}

/** One fact on which our reading and the corpus differ. */
export interface Difference {
  kind: 'packets' | 'conversation' | 'name' | 'dns';
  fact: string;
  expected: string;
  ours: string;
}

/** Every capture of the corpus. */
export function expectedFiles(): ExpectedFile[] {
  const text = readFileSync(join(corpusFolder(), 'expected.json'), 'utf8');
  return (JSON.parse(text) as { files: ExpectedFile[] }).files;
}

/** Path of a capture of the corpus. */
export function capturePath(file: string): string {
  return join(corpusFolder(), 'pcap', file);
}

/** Reads one capture with our engine. */
export function readCapture(name: string): WholeReading {
  const path = capturePath(name);
  const answers: ListedAnswer[] = [];
  const file = openCaptureFile(path);
  const reading = new FrameReading(packetsIn(file), {
    local: { prefixes: [], addresses: [] },
    onAnswer: (answer) => answers.push(answer.make()),
  });
  reading.read({ path, file });
  return wholeReading(reading.finish().result, answers);
}

/** Differences between our reading and the expected facts, packets and bytes first. */
export function compareCapture(expected: ExpectedFile, ours: WholeReading): Difference[] {
  return [
    ...comparePackets(expected, ours),
    ...compareConversations(expected, ours),
    ...compareNames(expected, ours),
    ...compareAnswers(expected, ours),
  ];
}

function comparePackets(expected: ExpectedFile, ours: WholeReading): Difference[] {
  const differences: Difference[] = [];
  const { totals } = ours;
  const add = (fact: string, want: number, got: number) => {
    if (want !== got) differences.push({ kind: 'packets', fact, expected: String(want), ours: String(got) });
  };
  add('packets', expected.packets, totals.packets);
  add('IP packets', expected.ip.packets, totals.ipPackets);
  add('IP bytes', expected.ip.bytes, totals.ipBytes);
  add('sum of verdicts', totals.packets, totals.ipPackets + totals.nonIpPackets + totals.parserDropped);
  return differences;
}

function compareConversations(expected: ExpectedFile, ours: WholeReading): Difference[] {
  const omitted = new Set((expected.conversations_omitted ?? []).map((pair) => pair.join(' ')));
  const want = new Map(
    expected.conversations.map((one) => [
      `${one.a} ${one.b}`,
      `${one.packets_a_to_b}/${one.bytes_a_to_b} up, ${one.packets_b_to_a}/${one.bytes_b_to_a} down`,
    ]),
  );
  const got = new Map(
    ours.conversations.map((one) => [
      `${one.a} ${one.b}`,
      `${one.packetsAToB}/${one.bytesAToB} up, ${one.packetsBToA}/${one.bytesBToA} down`,
    ]),
  );
  return compareMaps('conversation', want, got, omitted);
}

function compareMaps(
  kind: Difference['kind'],
  want: Map<string, string>,
  got: Map<string, string>,
  ignored: Set<string>,
): Difference[] {
  const differences: Difference[] = [];
  for (const fact of new Set([...want.keys(), ...got.keys()])) {
    if (ignored.has(fact) || want.get(fact) === got.get(fact)) continue;
    differences.push({ kind, fact, expected: want.get(fact) ?? 'none', ours: got.get(fact) ?? 'none' });
  }
  return differences;
}

/** In the corpus, a public name of an encrypted hello is a server name like any other. */
const kinds = new Map([
  ['tls_sni', 'tls_sni'],
  ['tls_outer', 'tls_sni'],
  ['http_host', 'http_host'],
  ['http_connect', 'http_connect'],
]);

function compareNames(expected: ExpectedFile, ours: WholeReading): Difference[] {
  const want = new Map<string, string>();
  for (const flow of expected.flows) {
    if (flow.kind === 'dns_answer') continue;
    const ends = `${flow.transport} ${flow.client.join(' ')} > ${flow.server.join(' ')}`;
    want.set(`${ends} ${flow.kind} ${flow.name}${flow.tunnel ? ` in ${flow.tunnel}` : ''}`, 'seen');
  }
  const got = new Map<string, string>();
  for (const flow of ours.flows) {
    const kind = kinds.get(flow.evidence);
    if (kind === undefined) continue;
    const ends = `tcp ${textOf(flow.client)} > ${textOf(flow.server)}`;
    const fact = `${ends} ${kind} ${flow.host}${flow.tunnel ? ` in ${flow.tunnel}` : ''}`;
    got.set(fact, got.has(fact) ? 'seen twice' : 'seen');
  }
  return compareMaps('name', want, got, new Set());
}

function compareAnswers(expected: ExpectedFile, ours: WholeReading): Difference[] {
  const want = new Map<string, string>();
  const got = new Map<string, string>();
  const add = (map: Map<string, string>, fact: string, text: string) =>
    map.set(fact, map.has(fact) ? `${map.get(fact)}; ${text}` : text);
  for (const flow of expected.flows) {
    if (flow.kind !== 'dns_answer') continue;
    const addresses = (flow.addresses ?? []).map((one) => `${one.address}/${one.ttl}`).join(' ');
    const text = `${(flow.cname_chain ?? []).join(' > ')} = ${addresses}, asked ${flow.query_seen}`;
    add(want, `${flow.client.join(' ')} > ${flow.server.join(' ')} ${flow.name}`, text);
  }
  for (const answer of ours.answers) {
    const addresses = answer.addresses.map((one) => `${one.address}/${one.ttl}`).join(' ');
    const text = `${answer.cnameChain.join(' > ')} = ${addresses}, asked ${answer.querySeen}`;
    add(got, `${textOf(answer.client)} > ${textOf(answer.server)} ${answer.name}`, text);
  }
  return compareMaps('dns', want, got, new Set());
}

function textOf(end: ListedEnd): string {
  return `${end.ip} ${end.port}`;
}
