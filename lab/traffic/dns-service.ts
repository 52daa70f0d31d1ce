/** The lab's resolver: answers over UDP and TCP for the names of the internet plan and of the guests. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { parseAddress } from '#common/ip/index.ts';
import {
  type DnsQuestion,
  type DnsRecord,
  parseQuery,
  recordTypes,
  writeAnswer,
  writeName,
  writeTruncated,
} from './dns-wire.ts';
import { addressRecords, aliasRecords, manyAddresses, manyAddressesName, resolver } from './internet-plan.ts';

const ttlSeconds = 60;
/** Looks up the addresses of a name that is not in the plan, such as a guest's. */
export type FindHosted = (name: string) => readonly string[] | null;

/** Answers one query of either transport. Null for anything else. */
export function answerQuery(
  message: Buffer,
  findHosted: FindHosted,
  transport: 'udp' | 'tcp',
): Buffer | null {
  const question = parseQuery(message);
  if (!question) return null;
  const found = findRecords(question, findHosted);
  const answer = writeAnswer(question, found ?? [], found !== null);
  const fits = transport === 'tcp' || answer.length <= question.udpBytesMax;
  return fits ? answer : writeTruncated(question);
}

function findRecords(question: DnsQuestion, findHosted: FindHosted): DnsRecord[] | null {
  const alias = aliasRecords.get(question.name);
  const name = alias ?? question.name;
  const addresses = findAddresses(name, findHosted);
  if (!addresses) return null;
  const records: DnsRecord[] = [];
  if (alias) {
    records.push({ name: question.name, type: recordTypes.cname, ttlSeconds, data: writeName(alias) });
  }
  for (const address of addresses) {
    const data = Buffer.from(parseAddress(address)!);
    const type = data.length === 4 ? recordTypes.a : recordTypes.aaaa;
    if (type === question.type) records.push({ name, type, ttlSeconds, data });
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
