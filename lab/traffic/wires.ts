/**
 * What clients and servers of the services say to each other: the first messages of the real protocols, after which the sizes of
 * the plan follow as bytes without a meaning.
 */
import { encode, RECURSION_AVAILABLE, RECURSION_DESIRED } from 'dns-packet';

export interface Wire {
  transport: 'tcp' | 'tls' | 'udp';
  port: number;
  /** What the server says before it is asked; not over UDP. */
  greeting?: Buffer;
  request: Buffer;
  answer: Buffer;
  /** Requests that a client of UDP sends, each after the answer to the one before. */
  rounds?: number;
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const text = (line: string) => Buffer.from(line, 'latin1');

const dnsQuestion = { type: 'A', name: 'www.example.com' } as const;
const dnsQuery = encode({ type: 'query', id: 0x5c, flags: RECURSION_DESIRED, questions: [dnsQuestion] });
const dnsAnswer = encode({
  type: 'response',
  id: 0x5c,
  flags: RECURSION_DESIRED | RECURSION_AVAILABLE,
  questions: [dnsQuestion],
  answers: [{ ...dnsQuestion, ttl: 60, data: '198.51.100.80' }],
});

/** A message of DNS over TCP or TLS has its length before it. */
function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

const quicIds = { client: '08 a1a2a3a4a5a6a7a8', server: '08 b1b2b3b4b5b6b7b8' } as const;
/** The least size of a client's first datagram. */
const initialBytes = 1_200;

/** What every client and server of QUIC can do without a secret: agree on a version (RFC 9000, section 6). */
const quic: Wire = {
  transport: 'udp',
  port: 443,
  // A version that forces negotiation, then both connection ids.
  request: Buffer.concat([hex(`c0 1a2a3a4a ${quicIds.server} ${quicIds.client}`)], initialBytes),
  answer: hex(`80 00000000 ${quicIds.client} ${quicIds.server} 00000001 6b3343cf`),
};

const stunCookie = '2112a442';
const stunId = '0102030405060708090a0b0c';

export const wires = {
  amqp: {
    transport: 'tcp',
    port: 5672,
    request: hex('414d5150 00 00 09 01'),
    answer: hex('01 0000 00000004 000a 000a ce'),
  },
  backup: {
    transport: 'tls',
    port: 8007,
    request: text('POST /backup HTTP/1.1\r\n\r\n'),
    answer: text('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  },
  dns: { transport: 'udp', port: 53, request: dnsQuery, answer: dnsAnswer },
  dns_over_tls: {
    transport: 'tls',
    port: 853,
    request: withLength(dnsQuery),
    answer: withLength(dnsAnswer),
  },
  game: {
    transport: 'udp',
    port: 27015,
    request: Buffer.concat([hex('ffffffff'), text('TSource Engine Query\0')]),
    answer: Buffer.concat([hex('ffffffff 49 11'), text('Lab arena\0de_lab\0lab\0Lab\0')], 120),
    rounds: 6,
  },
  git: {
    transport: 'tcp',
    port: 9418,
    request: gitLine('git-upload-pack /lab.git\0host=src.patchwork.example'),
    answer: Buffer.concat([gitLine('da39a3ee5e6b4b0d3255bfef95601890afd80709 HEAD\n'), text('0000')]),
  },
  imaps: {
    transport: 'tls',
    port: 993,
    greeting: text('* OK IMAP4rev1 ready\r\n'),
    request: text('a1 CAPABILITY\r\n'),
    answer: text('* CAPABILITY IMAP4rev1 IDLE\r\na1 OK\r\n'),
  },
  irc_tls: {
    transport: 'tls',
    port: 6697,
    request: text('NICK lab\r\nUSER lab 0 * :lab\r\n'),
    answer: text(':irc.oldnet.example 001 lab :Welcome\r\n'),
  },
  ldaps: {
    transport: 'tls',
    port: 636,
    request: hex('300c 020101 6007 020103 0400 8000'),
    answer: hex('300c 020101 6107 0a0100 0400 0400'),
  },
  memcached: {
    transport: 'tcp',
    port: 11211,
    request: text('get lab\r\n'),
    answer: text('VALUE lab 0 2\r\nok\r\nEND\r\n'),
  },
  minecraft: {
    transport: 'tcp',
    port: 25565,
    // A handshake for the state, then the request for it.
    request: hex('0a 00 8006 03 6c6162 63dd 01 01 00'),
    answer: hex('04 00 02 7b7d'),
  },
  mqtt: {
    transport: 'tls',
    port: 8883,
    request: hex('10 0f 0004 4d515454 04 02 003c 0003 6c6162'),
    answer: hex('20 02 00 00'),
  },
  mysql: {
    transport: 'tcp',
    port: 3306,
    greeting: Buffer.concat([hex('36000000 0a'), text('8.4.3\0')], 58),
    request: hex('20000001 8da20b00 00000001 21'),
    answer: hex('07000002 00 00 00 0200 0000'),
  },
  ntp: { transport: 'udp', port: 123, request: ntpMessage(0x23), answer: ntpMessage(0x24) },
  postgresql: {
    transport: 'tcp',
    port: 5432,
    request: hex('00000008 04d2162f'),
    answer: text('N'),
  },
  quic,
  redis: {
    transport: 'tcp',
    port: 6379,
    request: text('*1\r\n$4\r\nPING\r\n'),
    answer: text('+PONG\r\n'),
  },
  rsync: {
    transport: 'tcp',
    port: 873,
    greeting: text('@RSYNCD: 31.0\n'),
    request: text('@RSYNCD: 31.0\nlab\n'),
    answer: text('@RSYNCD: OK\n'),
  },
  sip: {
    transport: 'udp',
    port: 5060,
    request: text('OPTIONS sip:voice.callbridge.example SIP/2.0\r\nCSeq: 1 OPTIONS\r\n\r\n'),
    answer: text('SIP/2.0 200 OK\r\nCSeq: 1 OPTIONS\r\nAllow: INVITE, ACK, BYE\r\n\r\n'),
    rounds: 2,
  },
  smtp: {
    transport: 'tcp',
    port: 25,
    greeting: text('220 mx.postbox.example ESMTP\r\n'),
    request: text('EHLO guest.example.edu\r\n'),
    answer: text('250 mx.postbox.example\r\n'),
  },
  smtps: {
    transport: 'tls',
    port: 465,
    greeting: text('220 submit.postroom.example ESMTP\r\n'),
    request: text('EHLO guest.example.edu\r\n'),
    answer: text('250 submit.postroom.example\r\n'),
  },
  ssh: {
    transport: 'tcp',
    port: 22,
    greeting: text('SSH-2.0-OpenSSH_10.0\r\n'),
    request: text('SSH-2.0-OpenSSH_10.0\r\n'),
    answer: hex('0000000c 0a 14'),
  },
  stun: {
    transport: 'udp',
    port: 3478,
    request: hex(`0001 0000 ${stunCookie} ${stunId}`),
    answer: hex(`0101 000c ${stunCookie} ${stunId} 0020 0008 0001 a147 e712a643`),
    rounds: 3,
  },
  syslog_tls: {
    transport: 'tls',
    port: 6514,
    request: text('24 <14>1 - guest lab - - - '),
    answer: Buffer.alloc(0),
  },
  time: { transport: 'udp', port: 123, request: Buffer.alloc(48), answer: Buffer.alloc(48) },
  whois: {
    transport: 'tcp',
    port: 43,
    request: text('domain example.net\r\n'),
    answer: Buffer.alloc(1200, 'x'),
  },
  wireguard: {
    transport: 'udp',
    port: 51820,
    // Handshake initiation and response.
    request: Buffer.concat([hex('01000000')], 148),
    answer: Buffer.concat([hex('02000000')], 92),
  },
  xmpp: {
    transport: 'tcp',
    port: 5222,
    request: text("<stream:stream to='chat.gathering.example' version='1.0'>"),
    answer: text("<stream:stream from='chat.gathering.example' version='1.0'>"),
  },
} as const satisfies Readonly<Record<string, Wire>>;

export type WireKind = keyof typeof wires;

export function wireOf(kind: string): Wire | null {
  return Object.hasOwn(wires, kind) ? wires[kind as WireKind] : null;
}

function ntpMessage(first: number): Buffer {
  const message = Buffer.alloc(48);
  message[0] = first;
  return message;
}

/** A line of git's protocol begins with its length, these four digits included. */
function gitLine(line: string): Buffer {
  return text((line.length + 4).toString(16).padStart(4, '0') + line);
}
