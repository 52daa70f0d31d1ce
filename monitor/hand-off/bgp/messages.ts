/** Messages of BGP-4 (RFC 4271) as far as a speaker needs them that announces a few routes and takes none. */
import { attribute, type Family, families, type Route } from './route.ts';

export const messageTypes = { open: 1, update: 2, notification: 3, keepalive: 4 } as const;
const headerBytes = 19;
const messageMax = 4096;
/** In place of an AS number of four bytes. */
const asTrans = 23_456;

export interface Message {
  type: number;
  body: Buffer;
}

function encode(type: number, body: Buffer): Buffer {
  const head = Buffer.alloc(headerBytes, 0xff);
  head.writeUInt16BE(headerBytes + body.length, 16);
  head.writeUInt8(type, 18);
  return Buffer.concat([head, body]);
}

/** Whole messages at the start of these bytes, and what is left. Throws for what is no BGP. */
export function splitMessages(bytes: Buffer): { messages: Message[]; rest: Buffer } {
  const messages: Message[] = [];
  let at = 0;
  while (bytes.length - at >= headerBytes) {
    const length = bytes.readUInt16BE(at + 16);
    if (length < headerBytes || length > messageMax || bytes[at] !== 0xff)
      throw new Error('the peer does not speak BGP');
    if (bytes.length - at < length) break;
    messages.push({ type: bytes[at + 18]!, body: bytes.subarray(at + headerBytes, at + length) });
    at += length;
  }
  return { messages, rest: bytes.subarray(at) };
}

export interface OpenInput {
  as: number;
  holdSeconds: number;
  /** Four bytes. */
  routerId: Buffer;
  /** How long the peer keeps the routes when the session is lost; 0: not at all. */
  keepSeconds: number;
}

/** Families, AS numbers of four bytes, and graceful restart. */
export function encodeOpen({ as, holdSeconds, routerId, keepSeconds }: OpenInput): Buffer {
  const as4 = Buffer.alloc(4);
  as4.writeUInt32BE(as);
  const restart = Buffer.alloc(2);
  // The bit of a restart is always set: the peer need not wait for this speaker.
  restart.writeUInt16BE(0x8000 | keepSeconds);
  const capabilities = [
    ...families.map(({ afi, safi }) => capability(1, Buffer.from([0, afi, 0, safi]))),
    capability(65, as4),
    ...(keepSeconds > 0
      ? [
          capability(
            64,
            // The bit of each family says that its routes are to be kept.
            Buffer.concat([restart, ...families.map(({ afi, safi }) => Buffer.from([0, afi, safi, 0x80]))]),
          ),
        ]
      : []),
  ];
  const parameters = Buffer.concat(capabilities);
  const head = Buffer.alloc(5);
  head.writeUInt8(4, 0);
  head.writeUInt16BE(as > 0xffff ? asTrans : as, 1);
  head.writeUInt16BE(holdSeconds, 3);
  return encode(
    messageTypes.open,
    Buffer.concat([head, routerId, Buffer.from([parameters.length + 2, 2, parameters.length]), parameters]),
  );
}

const capability = (code: number, value: Buffer) => Buffer.concat([Buffer.from([code, value.length]), value]);

export interface PeerOpen {
  as: number;
  holdSeconds: number;
  hasAs4: boolean;
  /** `afi/safi`. */
  families: Set<string>;
}

/** Throws for a malformed message. */
export function decodeOpen(body: Buffer): PeerOpen {
  const found: PeerOpen = {
    as: body.readUInt16BE(1),
    holdSeconds: body.readUInt16BE(3),
    hasAs4: false,
    families: new Set(),
  };
  const end = 10 + body.readUInt8(9);
  for (let at = 10; at + 2 <= end; at += 2 + body.readUInt8(at + 1)) {
    if (body.readUInt8(at) !== 2) continue;
    const last = at + 2 + body.readUInt8(at + 1);
    for (let i = at + 2; i + 2 <= last; i += 2 + body.readUInt8(i + 1)) {
      const code = body.readUInt8(i);
      if (code === 1) found.families.add(`${body.readUInt16BE(i + 2)}/${body.readUInt8(i + 5)}`);
      if (code === 65) {
        found.as = body.readUInt32BE(i + 2);
        found.hasAs4 = true;
      }
    }
  }
  // Without the capability a peer has IPv4 unicast alone.
  if (found.families.size === 0) found.families.add('1/1');
  return found;
}

export const encodeKeepalive = (): Buffer => encode(messageTypes.keepalive, Buffer.alloc(0));

/** `as`: both ends of the session; with the same on both it is an internal one. */
export function encodeAnnouncement(route: Route, as: { own: number; peer: number }): Buffer {
  const isInternal = as.own === as.peer;
  const path = Buffer.alloc(6, 0);
  path.writeUInt8(2, 0);
  path.writeUInt8(1, 1);
  path.writeUInt32BE(as.own, 2);
  const isPlain = route.family.afi === 1 && route.family.safi === 1;
  const attributes = [
    attribute(0x40, 1, Buffer.from([0])),
    attribute(0x40, 2, isInternal ? Buffer.alloc(0) : path),
    ...(isPlain ? [attribute(0x40, 3, route.nextHop!)] : []),
    ...(isInternal ? [attribute(0x40, 5, Buffer.from([0, 0, 0, 100]))] : []),
    ...(isPlain ? [] : [attribute(0x80, 14, reach(route))]),
    route.attributes,
  ];
  return encodeUpdate(Buffer.alloc(0), Buffer.concat(attributes), isPlain ? route.nlri : Buffer.alloc(0));
}

function reach({ family, nextHop, nlri }: Route): Buffer {
  const hop = nextHop ?? Buffer.alloc(0);
  return Buffer.concat([Buffer.from([0, family.afi, family.safi, hop.length]), hop, Buffer.from([0]), nlri]);
}

export function encodeWithdrawal({ family, nlri }: Pick<Route, 'family' | 'nlri'>): Buffer {
  if (family.afi === 1 && family.safi === 1) return encodeUpdate(nlri, Buffer.alloc(0), Buffer.alloc(0));
  const unreach = Buffer.concat([Buffer.from([0, family.afi, family.safi]), nlri]);
  return encodeUpdate(Buffer.alloc(0), attribute(0x80, 15, unreach), Buffer.alloc(0));
}

/** All routes of a family have been announced: what the peer kept from before and was not among them goes. */
export const encodeEndOfRib = (family: Family): Buffer => encodeWithdrawal({ family, nlri: Buffer.alloc(0) });

function encodeUpdate(withdrawn: Buffer, attributes: Buffer, nlri: Buffer): Buffer {
  const lengths = [withdrawn, attributes].map((part) => Buffer.from([part.length >> 8, part.length & 0xff]));
  return encode(messageTypes.update, Buffer.concat([lengths[0]!, withdrawn, lengths[1]!, attributes, nlri]));
}

const notificationCodes: Readonly<Record<number, string>> = {
  1: 'message header error',
  2: 'OPEN message error',
  3: 'UPDATE message error',
  4: 'hold timer expired',
  5: 'state machine error',
  6: 'cease',
};

/** Why the peer ends the session. */
export function describeNotification(body: Buffer): string {
  const [code = 0, subcode = 0] = body;
  const isWrongAs = code === 2 && subcode === 2;
  const text = isWrongAs ? 'wrong AS number' : (notificationCodes[code] ?? 'unknown');
  return `the peer ended the session: ${text} (${code}/${subcode})`;
}
