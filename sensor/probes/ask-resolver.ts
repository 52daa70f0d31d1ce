import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import type { AttemptOutcome } from './attempts.ts';

const headerBytes = 12;
/** The library does not check it. */
const labelBytesMax = 63;

/**
 * Asks a resolver for the addresses of a name over UDP. A valid answer has no error code and the same question. The
 * socket is connected, so that datagrams of other senders are ignored.
 */
export function askResolver(
  resolver: string,
  port: number,
  name: string,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  const query = encodeQuery(name);
  if (!query) return Promise.resolve({ failure: 'name_not_found' });
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(resolver) ? 'udp6' : 'udp4');
    let startedMs = 0;
    const finish = (end: () => void) => {
      signal.removeEventListener('abort', onAbort);
      socket.close();
      end();
    };
    const onAbort = () => finish(() => reject(signal.reason));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', (error) => finish(() => reject(error)));
    socket.on('message', (answer) => {
      if (!isAnswerTo(query, answer)) return;
      const rttUs = (performance.now() - startedMs) * 1000;
      const isGood = (answer[3]! & 0x0f) === 0;
      finish(() => resolve(isGood ? { rttUs } : { failure: 'bad_answer' }));
    });
    socket.connect(port, resolver, () => {
      startedMs = performance.now();
      socket.send(query);
    });
  });
}

/** A query for the addresses of a name, recursion desired; null for a name that has an empty or too long label. */
function encodeQuery(name: string): Buffer | null {
  const labels = name.replace(/\.$/, '').split('.');
  if (labels.some((label) => label.length === 0 || Buffer.byteLength(label) > labelBytesMax)) return null;
  const id = randomInt(0x1_0000);
  return encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [{ type: 'A', name }] });
}

/** The same id and question, marked as an answer. */
function isAnswerTo(query: Buffer, answer: Buffer): boolean {
  if (answer.length < query.length || answer.readUInt16BE(0) !== query.readUInt16BE(0)) return false;
  if ((answer[2]! & 0x80) === 0 || answer.readUInt16BE(4) !== 1) return false;
  const [asked, told] = [query, answer].map((message) =>
    message.toString('latin1', headerBytes, query.length).toLowerCase(),
  );
  return asked === told;
}
