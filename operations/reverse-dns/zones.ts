/** Where reverse names are written: the file of `SVC_OPERATIONS_REVERSE_DNS_FILE`, and the names of records. */
import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { CodedError, describeError } from '#common/errors/index.ts';
import { type Prefix, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import { type DnsUpdate, updateAlgorithms, writeByUpdate } from './dns-update.ts';
import { writeToPowerDns } from './powerdns.ts';

/** A server that has the reverse names of a prefix. */
export interface ReverseZone {
  prefix: Prefix;
  /** Of the zone, without a dot at its end; `113.0.203.in-addr.arpa`, or one of RFC 2317. */
  name: string;
  /** Replaces the PTR of this record; null: there is none. Throws what is worth another attempt. */
  write(record: string, target: string | null): Promise<void>;
}

const strict = { additionalProperties: false };
const PowerDns = Type.Object(
  { url: Type.String(), api_key: Type.String({ minLength: 1 }), server_id: Type.Optional(Type.String()) },
  strict,
);
const Update = Type.Object(
  {
    server: Type.String(),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    key: Type.String({ minLength: 1 }),
    algorithm: Type.Optional(Type.Enum(Object.keys(updateAlgorithms))),
    secret: Type.String({ minLength: 4 }),
  },
  strict,
);
const ReverseDnsFile = Type.Object(
  {
    resolvers: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    zones: Type.Array(
      Type.Object(
        {
          prefix: Type.String(),
          zone: Type.Optional(Type.String()),
          powerdns: Type.Optional(PowerDns),
          rfc2136: Type.Optional(Update),
        },
        strict,
      ),
    ),
  },
  strict,
);
type FileZone = Static<typeof ReverseDnsFile>['zones'][number];

/**
 * Reads the file: `zones`, each with `prefix`, `zone` where the prefix doesn't end between two labels, and either `powerdns` or
 * `rfc2136`; `resolvers`, `address[:port]`, of names that are confirmed, by default those of the machine. Throws one clear sentence.
 */
export async function readReverseDnsFile(
  file: string,
  allowsInsecureHttp: boolean,
): Promise<{ zones: ReverseZone[]; resolvers: string[] | null }> {
  const refuse = (what: string, cause?: unknown) =>
    new CodedError('reverse_dns.file', `SVC_OPERATIONS_REVERSE_DNS_FILE (${file}): ${what}.`, {}, cause);
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    // The parser's words quote the file, which holds secrets.
    const why = error instanceof SyntaxError ? 'it is not JSON' : describeError(error);
    throw refuse(`can't be read (${why})`);
  }
  if (!Value.Check(ReverseDnsFile, content)) {
    const [first] = Value.Errors(ReverseDnsFile, content);
    throw refuse(`${first?.instancePath || 'the file'} ${first?.message ?? 'is not as documented'}`);
  }
  const zones = content.zones.map((given) => {
    const prefix = parsePrefix(given.prefix);
    if (prefix === null) throw refuse(`"${given.prefix}" is no network such as 203.0.113.0/24`);
    const name = given.zone?.replace(/\.$/, '').toLowerCase() ?? zoneOf(prefix);
    if (name === null) throw refuse(`${given.prefix} needs "zone": it doesn't end between two labels`);
    if ((given.powerdns === undefined) === (given.rfc2136 === undefined))
      throw refuse(`${given.prefix} needs either "powerdns" or "rfc2136"`);
    const url = given.powerdns?.url;
    if (url !== undefined && !allowsInsecureHttp && !isPrivateTransport(url))
      throw refuse(
        `the "url" of ${given.prefix} is not encrypted: use https, or set SVC_ALLOW_INSECURE_HTTP=1`,
      );
    return { prefix, name, write: writerOf(name, given) };
  });
  return { zones, resolvers: content.resolvers ?? null };
}

function writerOf(zone: string, { powerdns, rfc2136 }: FileZone): ReverseZone['write'] {
  if (powerdns !== undefined) {
    const { url, api_key: apiKey, server_id: serverId = 'localhost' } = powerdns;
    return (record, target) => writeToPowerDns({ url, apiKey, serverId, zone }, record, target);
  }
  const { server, port = 53, key, algorithm = 'hmac-sha256', secret } = rfc2136!;
  const update: DnsUpdate = {
    ...{ server, port, zone, key },
    algorithm: algorithm as DnsUpdate['algorithm'],
    secret: Buffer.from(secret, 'base64'),
  };
  return (record, target) => writeByUpdate(update, record, target);
}

/** The narrowest zone that has the address; null where no server has it. */
export function findZone(zones: readonly ReverseZone[], address: string): ReverseZone | null {
  const bytes = parseAddress(address)!;
  const having = zones.filter(({ prefix }) => prefixContains(prefix, bytes));
  return having.toSorted((a, b) => b.prefix.length - a.prefix.length)[0] ?? null;
}

/** The labels of an address, the last one of the address first. */
function labelsOf(bytes: Uint8Array): string[] {
  const parts =
    bytes.length === 4
      ? [...bytes].map(String)
      : [...bytes].flatMap((byte) => [byte >> 4, byte & 15].map((nibble) => nibble.toString(16)));
  return [...parts.toReversed(), bytes.length === 4 ? 'in-addr.arpa' : 'ip6.arpa'];
}

/** Of a prefix that ends between two labels; else null. */
function zoneOf({ bytes, length }: Prefix): string | null {
  const perLabel = bytes.length === 4 ? 8 : 4;
  if (length % perLabel !== 0) return null;
  return labelsOf(bytes)
    .slice((bytes.length * 8 - length) / perLabel)
    .join('.');
}

/** The record of an address in a zone: its own name, or for a zone of RFC 2317, to which that is an alias, the last number there. */
export function recordOf(zone: string, address: string): string {
  const labels = labelsOf(parseAddress(address)!);
  const natural = labels.join('.');
  return natural === zone || natural.endsWith(`.${zone}`) ? natural : `${labels[0]}.${zone}`;
}
