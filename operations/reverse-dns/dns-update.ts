/** Writes records by dynamic update (RFC 2136), signed with a shared key (TSIG, RFC 8945), over TCP. */
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import { connect } from 'node:net';
import { decode, encode, type Packet } from 'dns-packet';
import { CodedError, describeError } from '#common/errors/index.ts';

export const updateAlgorithms = {
  'hmac-sha256': 'sha256',
  'hmac-sha384': 'sha384',
  'hmac-sha512': 'sha512',
} as const;

export interface DnsUpdate {
  /** Address or host name. */
  server: string;
  port: number;
  zone: string;
  /** Name of the key. */
  key: string;
  algorithm: keyof typeof updateAlgorithms;
  secret: Buffer;
}

const timeoutMs = 10_000;
const ttlSeconds = 3_600;
const updateFlags = 5 << 11;
const [classAny, tsig] = [255, 250];
/** Seconds that the clocks of both may differ. */
const fudge = 300;

export async function writeByUpdate(of: DnsUpdate, record: string, target: string | null): Promise<void> {
  const message = Buffer.from(
    encode({
      type: 'query',
      id: randomInt(0x1_0000),
      flags: updateFlags,
      questions: [{ name: of.zone, type: 'SOA', class: 'IN' }],
      authorities: [
        // An empty PTR of class ANY removes all of the name.
        { name: record, type: 'UNKNOWN_12', class: 'ANY', ttl: 0, data: Buffer.alloc(0) },
        ...(target === null
          ? []
          : [{ name: record, type: 'PTR', class: 'IN', ttl: ttlSeconds, data: target }]),
      ],
    } as unknown as Packet),
  );
  const { signed, mac } = sign(of, message, Math.floor(Date.now() / 1000));
  const answer = await exchange(of, signed);
  const { rcode, id } = decode(answer) as unknown as { rcode: string; id: number };
  const refused = (why: string) =>
    new CodedError('reverse_dns.failed', `The DNS server of ${of.zone} ${why}.`);
  if (id !== message.readUInt16BE(0)) throw refused('answered another request');
  if (rcode !== 'NOERROR') throw refused(`refused the update: ${rcode}`);
  if (!isSigned(of, answer, mac)) throw refused('did not sign its answer with the key');
}

/** The name in wire form, in lower case and not compressed. */
function wireName(name: string): Buffer {
  const labels = name
    .toLowerCase()
    .split('.')
    .filter((label) => label !== '');
  return Buffer.concat([
    ...labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`)),
    Buffer.alloc(1),
  ]);
}

const uint16 = (value: number) => Buffer.from([value >> 8, value & 0xff]);
const time48 = (seconds: number) => {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(seconds, 0, 6);
  return bytes;
};

/** The digest of a message: `before` is the MAC of the request, for its answer. */
function digest(
  { key, algorithm, secret }: DnsUpdate,
  message: Buffer,
  variables: { time: Buffer; fudge: number; error: number; other: Buffer },
  before?: Buffer,
): Buffer {
  const { time, error, other } = variables;
  const hmac = createHmac(updateAlgorithms[algorithm], secret);
  if (before) hmac.update(Buffer.concat([uint16(before.length), before]));
  return hmac
    .update(message)
    .update(Buffer.concat([wireName(key), uint16(classAny), Buffer.alloc(4), wireName(algorithm)]))
    .update(Buffer.concat([time, uint16(variables.fudge), uint16(error), uint16(other.length), other]))
    .digest();
}

function sign(of: DnsUpdate, message: Buffer, seconds: number): { signed: Buffer; mac: Buffer } {
  const time = time48(seconds);
  const mac = digest(of, message, { time, fudge, error: 0, other: Buffer.alloc(0) });
  const id = message.subarray(0, 2);
  const data = Buffer.concat([
    ...[wireName(of.algorithm), time, uint16(fudge), uint16(mac.length), mac, id],
    ...[uint16(0), uint16(0)],
  ]);
  const head = [wireName(of.key), uint16(tsig), uint16(classAny), Buffer.alloc(4), uint16(data.length)];
  const signed = Buffer.concat([message, ...head, data]);
  signed.writeUInt16BE(message.readUInt16BE(10) + 1, 10);
  return { signed, mac };
}

/** Whether the answer ends with a signature of the key over itself and the request. */
function isSigned(of: DnsUpdate, answer: Buffer, requestMac: Buffer): boolean {
  const { additionals } = decode(answer) as unknown as {
    additionals: { name: string; type: string; data: Buffer }[];
  };
  const last = additionals.at(-1);
  if (last?.type !== 'TSIG' || last.name.toLowerCase() !== of.key.toLowerCase().replace(/\.$/, ''))
    return false;
  const { data } = last;
  const start = answer.length - (wireName(of.key).length + 10 + data.length);
  const algorithm = wireName(of.algorithm);
  if (start < 12 || !data.subarray(0, algorithm.length).equals(algorithm)) return false;
  const at = algorithm.length;
  const macLength = data.readUInt16BE(at + 8);
  const given = data.subarray(at + 10, at + 10 + macLength);
  const rest = data.subarray(at + 10 + macLength);
  const unsigned = Buffer.from(answer.subarray(0, start));
  unsigned.writeUInt16BE(unsigned.readUInt16BE(10) - 1, 10);
  const variables = {
    ...{ time: data.subarray(at, at + 6), fudge: data.readUInt16BE(at + 6) },
    ...{ error: rest.readUInt16BE(2), other: rest.subarray(6) },
  };
  const expected = digest(of, unsigned, variables, requestMac);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** One message over TCP, each with its length before it. */
function exchange({ server, port, zone }: DnsUpdate, message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server, port });
    const chunks: Buffer[] = [];
    const fail = (why: string) => {
      socket.destroy();
      reject(new CodedError('reverse_dns.failed', `The DNS server of ${zone} did not answer: ${why}.`));
    };
    socket.setTimeout(timeoutMs, () => fail('time-out'));
    socket.on('error', (error) => fail(describeError(error)));
    socket.on('end', () => fail('the connection was closed'));
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      const all = Buffer.concat(chunks);
      if (all.length < 2 || all.length < 2 + all.readUInt16BE(0)) return;
      socket.removeAllListeners('end');
      socket.end();
      resolve(all.subarray(2, 2 + all.readUInt16BE(0)));
    });
    socket.write(Buffer.concat([uint16(message.length), message]));
  });
}
