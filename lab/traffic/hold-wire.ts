/** A client's side of a conversation by a wire. Each resolves with the bytes that the service answered. */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Wire } from './wires.ts';

export interface WireCall {
  /** The name that a TLS client asks for and checks. */
  host: string;
  address: string;
  /** Bytes that are sent after the request. */
  sentBytes: number;
  /** PEM text of the certificate to trust. */
  certificate: string;
}

const answerMs = 5_000;
const datagramMs = 2_000;

/** Holds one conversation; rejects when it failed or was cut. */
export function holdWire(wire: Wire, call: WireCall, signal: AbortSignal): Promise<number> {
  return wire.transport === 'udp' ? askByDatagrams(wire, call, signal) : askByStream(wire, call, signal);
}

function askByStream(wire: Wire, call: WireCall, signal: AbortSignal): Promise<number> {
  const { host, address } = call;
  const greetingBytes = wire.greeting?.length ?? 0;
  return new Promise((resolve, reject) => {
    const to = { host: address, port: wire.port };
    const socket =
      wire.transport === 'tls' ? connectTls({ ...to, servername: host, ca: call.certificate }) : connect(to);
    const cut = () => socket.destroy(new Error('cut'));
    signal.addEventListener('abort', cut, { once: true });
    if (signal.aborted) cut();
    let bytes = 0;
    let isAsked = false;
    const ask = () => {
      if (isAsked || bytes < greetingBytes) return;
      isAsked = true;
      socket.write(Buffer.concat([wire.request, Buffer.alloc(call.sentBytes)]));
    };
    socket.setTimeout(answerMs, () => socket.destroy(new Error('no answer within five seconds')));
    socket.on(wire.transport === 'tls' ? 'secureConnect' : 'connect', ask);
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      ask();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      signal.removeEventListener('abort', cut);
      const answered = bytes - greetingBytes;
      if (isAsked && answered >= wire.answer.length) resolve(answered);
      else reject(new Error(`closed after ${bytes} bytes`));
    });
  });
}

/** As many questions as the wire has rounds, each after the answer to the one before; resolves with the last answer's bytes. */
function askByDatagrams(wire: Wire, { address }: WireCall, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', signal });
    let left = wire.rounds ?? 1;
    const timer = setTimeout(() => {
      socket.close();
      reject(new Error('no answer within two seconds'));
    }, datagramMs);
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new Error('cut'));
    });
    const ask = () => socket.send(wire.request, wire.port, address);
    socket.on('message', (message) => {
      left -= 1;
      if (left > 0) return ask();
      resolve(message.length);
      socket.close();
    });
    ask();
  });
}
