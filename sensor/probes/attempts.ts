/** Attempts: one function for each kind of probe. */

import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, isIP, isIPv6 } from 'node:net';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import type { Reporter } from '#common/reporter/index.ts';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { createPinger, type Pinger } from './pinger.ts';

export type Attempts = ReturnType<typeof createAttempts>;

/** Creates the attempt function. ICMP sockets are opened with the first probe that needs them. */
export function createAttempts(reporter: Reporter) {
  let pinger: Pinger | null = null;
  return {
    async attempt(probe: PlanProbe, signal: AbortSignal): Promise<AttemptOutcome | null> {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(probe.timeout_ms)]);
      const outcome = await attemptKind(probe, limit, () => (pinger ??= createPinger(reporter))).catch(
        (error: unknown): AttemptOutcome => ({ failure: failureOf(error, limit) }),
      );
      // Cancelled by a stop or a new plan: not a result of the target.
      return signal.aborted ? null : outcome;
    },
    async close() {
      await pinger?.close();
      pinger = null;
    },
  };
}

async function attemptKind(
  probe: PlanProbe,
  signal: AbortSignal,
  pinger: () => Pinger,
): Promise<AttemptOutcome> {
  switch (probe.kind) {
    case 'icmp':
      return pinger().ping(await addressOf(probe.target, signal), signal);
    case 'tcp':
      return connectTcp(await addressOf(probe.target, signal), probe.port!, signal);
    case 'http':
      return getPage(probe.target, signal);
    case 'dns':
      return askResolver(await addressOf(probe.target, signal), probe.port!, probe.question!, signal);
  }
}

/** The address itself, or the first address of the name. The lookup does not count as round trip. */
async function addressOf(target: string, signal: AbortSignal): Promise<string> {
  if (isIP(target)) return target;
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );
  return (await Promise.race([lookup(target), aborted])).address;
}

/** The failure, by the system's error code. */
function failureOf(
  error: unknown,
  limit: AbortSignal,
): Extract<AttemptOutcome, { failure: unknown }>['failure'] {
  const code = String((error as NodeJS.ErrnoException | null)?.code ?? '');
  if (limit.aborted || code === 'ETIMEDOUT') return 'timeout';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'ENODATA') return 'name_not_found';
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE') return 'refused';
  if (/^(ENETUNREACH|EHOSTUNREACH|ENETDOWN|EHOSTDOWN|EADDRNOTAVAIL|EINVAL|EAFNOSUPPORT)$/.test(code))
    return 'unreachable';
  if (code === 'EACCES' || code === 'EPERM') return 'not_permitted';
  if (/^(CERT_|ERR_TLS|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|EPROTO)/.test(code)) return 'tls';
  return 'bad_answer';
}

/** Opens and closes a connection: the round trip is the time of the handshake. */
function connectTcp(host: string, port: number, signal: AbortSignal): Promise<AttemptOutcome> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const socket = connect({ host, port, signal });
    socket.once('connect', () => {
      resolve({ rttUs: (performance.now() - startedMs) * 1000 });
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

/**
 * Requests a page over a new connection. The round trip ends with the answer's header, so it includes name resolution,
 * handshakes and the server's own time. A status below 400 is a success; redirects are not followed. The body is not
 * read.
 */
function getPage(target: string, signal: AbortSignal): Promise<AttemptOutcome> {
  return new Promise((resolve, reject) => {
    const url = new URL(target);
    const startedMs = performance.now();
    const headers = { 'user-agent': 'svc-sensor', connection: 'close' };
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, { agent: false, headers, signal }, (response) => {
      const rttUs = (performance.now() - startedMs) * 1000;
      resolve(response.statusCode! < 400 ? { rttUs } : { failure: 'bad_answer' });
      response.on('error', () => {});
      request.destroy();
    });
    request.on('error', reject);
    request.end();
  });
}

/** One attempt. Never rejects; resolves to null when the signal ended it. */
export type Attempt = (probe: PlanProbe, signal: AbortSignal) => Promise<AttemptOutcome | null>;

export type AttemptOutcome = { rttUs: number } | { failure: NonNullable<ProbeResult['failure']> };

const headerBytes = 12;
/** The library does not check it. */
const labelBytesMax = 63;

/**
 * Asks a resolver for the addresses of a name over UDP. A valid answer has no error code and the same question. The
 * socket is connected, so that datagrams of other senders are ignored.
 */
function askResolver(
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
