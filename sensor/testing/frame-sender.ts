/** Sends handmade frames unchanged on an interface, so that a test knows every byte. Needs root. */
import koffi from 'koffi';

const afPacket = 17;
const sockRaw = 3;
const solPacket = 263;
const packetQdiscBypass = 20;

export type FrameSender = ReturnType<typeof openFrameSender>;

/** Opens a sender on an interface of this network namespace. */
export function openFrameSender(interfaceName: string, options: { bypassesQueue?: boolean } = {}) {
  const c = koffi.load(null);
  const socket = c.func('int socket(int domain, int type, int protocol)');
  const sendto = c.func(
    'int64_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
  );
  const close = c.func('int close(int fd)');
  const nameToIndex = c.func('unsigned int if_nametoindex(const char *name)');
  const fd: number = socket(afPacket, sockRaw, 0);
  if (fd < 0) throw new Error(`no packet socket: errno ${koffi.errno()}`);
  if (options.bypassesQueue) {
    const set = c.func('int setsockopt(int fd, int level, int name, const void *value, uint32_t length)');
    const one = Buffer.from([1, 0, 0, 0]);
    if (set(fd, solPacket, packetQdiscBypass, one, one.length) !== 0)
      throw new Error('no bypass of the queue');
  }
  const address = Buffer.alloc(20);
  address.writeUInt16LE(afPacket, 0);
  address.writeInt32LE(nameToIndex(interfaceName), 4);
  return {
    send(frame: Buffer) {
      const sent = Number(sendto(fd, frame, frame.length, 0, address, address.length));
      if (sent !== frame.length) throw new Error(`frame was not sent: errno ${koffi.errno()}`);
    },
    close() {
      close(fd);
    },
  };
}

const macs = Buffer.from('02000000000202000000000a', 'hex');

/** An Ethernet frame; `vlan` puts an 802.1Q tag in front of the type. */
export function ethernetFrame(type: number, payload: Buffer, vlan?: number): Buffer {
  const head = Buffer.alloc(vlan === undefined ? 2 : 6);
  if (vlan !== undefined) {
    head.writeUInt16BE(0x8100, 0);
    head.writeUInt16BE(vlan, 2);
  }
  head.writeUInt16BE(type, head.length - 2);
  return Buffer.concat([macs, head, payload]);
}

/** An IPv4 datagram with UDP and this many bytes of payload. */
export function udp4(source: string, target: string, payloadBytes: number): Buffer {
  const udp = udpPart(payloadBytes);
  const head = Buffer.alloc(20);
  head[0] = 0x45;
  head.writeUInt16BE(20 + udp.length, 2);
  head[8] = 64;
  head[9] = 17;
  for (const [i, part] of source.split('.').entries()) head[12 + i] = Number(part);
  for (const [i, part] of target.split('.').entries()) head[16 + i] = Number(part);
  let sum = 0;
  for (let i = 0; i < 20; i += 2) sum += head.readUInt16BE(i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  head.writeUInt16BE(~sum & 0xffff, 10);
  return Buffer.concat([head, udp]);
}

/** An IPv6 datagram from 2001:db8::`source` to 2001:db8::`target` with UDP. */
export function udp6(source: number, target: number, payloadBytes: number): Buffer {
  const udp = udpPart(payloadBytes);
  const head = Buffer.alloc(40);
  head[0] = 0x60;
  head.writeUInt16BE(udp.length, 4);
  head[6] = 17;
  head[7] = 64;
  for (const [at, host] of [
    [8, source],
    [24, target],
  ] as const) {
    head.writeUInt32BE(0x2001_0db8, at);
    head.writeUInt16BE(host, at + 14);
  }
  return Buffer.concat([head, udp]);
}

function udpPart(payloadBytes: number): Buffer {
  const udp = Buffer.alloc(8 + payloadBytes, 0x61);
  udp.writeUInt16BE(40_000, 0);
  udp.writeUInt16BE(9999, 2);
  udp.writeUInt16BE(udp.length, 4);
  udp.writeUInt16BE(0, 6);
  return udp;
}
