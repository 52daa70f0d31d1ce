/** The lab's resolver: answers over UDP and TCP for the names of the internet plan and of the guests. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Socket } from 'node:net';
import {
  type Answer,
  decode,
  encode,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { addressRecords, aliasRecords, manyAddresses, manyAddressesName, resolver } from './internet-plan.ts';

const ttlSeconds = 60;
/** The response code of a name that does not exist (NXDOMAIN). */
const nameNotFound = 3;

/** Looks up the addresses of a name that is not in the plan, such as a guest's. */
export type FindHosted = (name: string) => readonly string[] | null;

/** Answers one query of either transport. Null for anything else. */
export function answerQuery(
  message: Buffer,
  findHosted: FindHosted,
  transport: 'udp' | 'tcp',
): Buffer | null {
  const query = readQuery(message);
  if (!query) return null;
  const found = findRecords(query.question, findHosted);
  const answer = writeAnswer(query, found ?? [], found === null ? nameNotFound : 0);
  const fits = transport === 'tcp' || answer.length <= query.udpBytesMax;
  // The empty answer that tells a client of UDP to ask again over TCP.
  return fits ? answer : writeAnswer(query, [], TRUNCATED_RESPONSE);
}

interface Query {
  id: number;
  question: Question;
  isRecursionDesired: boolean;
  /** The largest UDP answer that the client takes: 512, or what its OPT record says. */
  udpBytesMax: number;
}

/** A query with one question; null for any other message. */
function readQuery(message: Buffer): Query | null {
  try {
    const { id = 0, type, questions = [], additionals = [], flag_rd: isRecursionDesired } = decode(message);
    const [question, ...more] = questions;
    if (type !== 'query' || !question || more.length > 0) return null;
    const opt = additionals.find((record) => record.type === 'OPT');
    return { id, question, isRecursionDesired, udpBytesMax: Math.max(512, opt?.udpPayloadSize ?? 0) };
  } catch {
    return null;
  }
}

function writeAnswer(query: Query, answers: Answer[], flags: number): Buffer {
  const recursion = RECURSION_AVAILABLE | (query.isRecursionDesired ? RECURSION_DESIRED : 0);
  return encode({
    type: 'response',
    id: query.id,
    flags: recursion | flags,
    questions: [query.question],
    answers,
  });
}

/** Null when the name does not exist. */
function findRecords(question: Question, findHosted: FindHosted): Answer[] | null {
  const asked = question.name.toLowerCase();
  const alias = aliasRecords.get(asked);
  const name = alias ?? asked;
  const addresses = findAddresses(name, findHosted);
  if (!addresses) return null;
  const records: Answer[] = [];
  if (alias) records.push({ name: asked, type: 'CNAME', ttl: ttlSeconds, data: alias });
  for (const address of addresses) {
    const type = isIPv6(address) ? 'AAAA' : 'A';
    if (type === question.type) records.push({ name, type, ttl: ttlSeconds, data: address });
  }
  return records;
}

function findAddresses(name: string, findHosted: FindHosted): readonly string[] | null {
  if (name === manyAddressesName) return manyAddresses;
  const site = addressRecords.get(name);
  return site ? [site.ipv4, site.ipv6] : findHosted(name);
}

/** Listens on the resolver's addresses; resolves when both families and both transports do. */
export async function startDnsService(findHosted: FindHosted): Promise<void> {
  for (const [type, address] of [
    ['udp4', resolver.ipv4],
    ['udp6', resolver.ipv6],
  ] as const) {
    // Bound to the very address: an answer from another one of this host would be thrown away.
    const socket = createSocket(type);
    socket.on('message', (message, from) => {
      const answer = answerQuery(message, findHosted, 'udp');
      if (answer) socket.send(answer, from.port, from.address);
    });
    socket.bind(53, address);
    await once(socket, 'listening');
    const server = createServer((connection) => serveConnection(connection, findHosted));
    server.listen(53, address);
    await once(server, 'listening');
  }
}

function serveConnection(connection: Socket, findHosted: FindHosted): void {
  let pending = Buffer.alloc(0);
  connection.setNoDelay(true);
  connection.on('error', () => connection.destroy());
  connection.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0);
      const answer = answerQuery(pending.subarray(2, end), findHosted, 'tcp');
      pending = pending.subarray(end);
      if (!answer) return connection.destroy();
      const length = Buffer.alloc(2);
      length.writeUInt16BE(answer.length);
      connection.write(Buffer.concat([length, answer]));
    }
  });
}
