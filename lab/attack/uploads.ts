/**
 * Uploads over a few established connections at a steady rate of full segments: much traffic, and no attack by its
 * form.
 *
 * A target that reads slowly is not pressed: what its connections don't take is not sent later.
 */
import { connect, type Socket } from 'node:net';
import { formatAddress } from '#common/ip/index.ts';
import { type AttackOrder, sourcesOf } from './attack-order.ts';
import type { AttackSender } from './senders.ts';

const connections = 3;
const servedPort = 80;
/** What a segment carries beside IPv6 and TCP's headers with timestamps; IPv4 has room for 20 more. */
export const segmentBytes = 1428;
/** One request and its body, sent again and again. */
const requestBytes = 256 * 1024;
const queuedBytesMax = 1024 * 1024;
const reconnectAfterMs = 1000;

export function openUploads(order: AttackOrder): AttackSender {
  const request = createRequest();
  const uploads = Array.from({ length: connections }, (_, i) => new Upload(order, i, request));
  let turn = 0;
  return {
    send(count) {
      let sent = 0;
      for (let i = 0; i < connections; i += 1) {
        // Earlier ones take what doesn't divide evenly, beginning with another one each time.
        const upload = uploads[(turn + i) % connections]!;
        sent += upload.send(Math.floor((count + connections - 1 - i) / connections));
      }
      turn += 1;
      return sent;
    },
    answered: () => null,
    close() {
      for (const upload of uploads) upload.close();
    },
  };
}

function createRequest(): Buffer {
  const head = (bodyBytes: number) =>
    `POST /discard HTTP/1.1\r\nHost: guest.example.edu\r\nContent-Length: ${bodyBytes}\r\n\r\n`;
  // The number's own length is the same for both.
  const bodyBytes = requestBytes - head(requestBytes).length;
  return Buffer.concat([Buffer.from(head(bodyBytes)), Buffer.alloc(bodyBytes, 'x')]);
}

/** One connection, opened again when it ends. */
class Upload {
  readonly #order: AttackOrder;
  readonly #from: string;
  readonly #request: Buffer;
  #socket: Socket | null = null;
  #isReady = false;
  #isClosed = false;
  /** Position in the request. */
  #at = 0;

  constructor(order: AttackOrder, index: number, request: Buffer) {
    this.#order = order;
    this.#request = request;
    const bytes = Uint8Array.from(sourcesOf(order.attackClass, order.target).bytes);
    bytes[bytes.length - 1] = 1 + index;
    this.#from = order.from ?? formatAddress(bytes);
    this.#connect();
  }

  /** Sends as many segments, or none while the connection is not there or not keeping up. */
  send(segments: number): number {
    const socket = this.#socket;
    if (!socket || !this.#isReady || segments === 0 || socket.writableLength > queuedBytesMax) return 0;
    for (let left = segments * segmentBytes; left > 0; ) {
      const piece = this.#request.subarray(this.#at, this.#at + left);
      socket.write(piece);
      left -= piece.length;
      this.#at = (this.#at + piece.length) % this.#request.length;
    }
    return segments;
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.destroy();
  }

  #connect(): void {
    if (this.#isClosed) return;
    const socket = connect({ host: this.#order.target, port: servedPort, localAddress: this.#from });
    this.#socket = socket;
    this.#at = 0;
    socket.setNoDelay(true);
    socket.resume();
    socket.on('connect', () => {
      this.#isReady = true;
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#isReady = false;
      setTimeout(() => this.#connect(), reconnectAfterMs).unref();
    });
  }
}
