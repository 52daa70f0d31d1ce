/** Packets of already named connections, to count the cost of one. */

import { offer, testCapture } from './captures.ts';
import { clientHello, ethernet, reverse, Tcp, tcp, udp } from './frames.ts';

const packets = 2000;
const ends4 = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const ends6 = { from: '2001:db8::1', fromPort: 40_001, to: '2001:db8:9::9', toPort: 443 };

export interface KnownTraffic {
  isIpv6: boolean;
  protocol: 'tcp' | 'udp';
}

/** Number of packets in the work of `knownTraffic`. */
export const knownPackets = packets * 2;

/**
 * Opens a connection and yields the work of its further packets: data in one direction, acknowledgements in the other.
 */
export function* knownTraffic({ isIpv6, protocol }: KnownTraffic): Generator<() => void> {
  const capture = testCapture();
  const ends = isIpv6 ? ends6 : ends4;
  const isTcp = protocol === 'tcp';
  const opening = isTcp
    ? [
        tcp(ends, Tcp.syn, 1),
        tcp(reverse(ends), Tcp.syn | Tcp.ack, 1),
        tcp(ends, Tcp.push | Tcp.ack, 2, clientHello({ host: 'www.example.com' })),
      ]
    : [];
  const data = new Uint8Array(100).fill(0x99);
  const sent = ethernet(isTcp ? tcp(reverse(ends), Tcp.ack, 2, data) : udp(reverse(ends), data));
  const answered = ethernet(isTcp ? tcp(ends, Tcp.ack, 500) : udp(ends, data));
  for (const packet of opening) offer(capture, ethernet(packet));
  offer(capture, answered);
  offer(capture, sent);
  yield () => {
    for (let i = 0; i < packets; i += 1) {
      offer(capture, sent);
      offer(capture, answered);
    }
  };
}
