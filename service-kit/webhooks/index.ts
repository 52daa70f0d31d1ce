/**
 * Outgoing webhooks, for whichever program sends them: Standard Webhooks signatures, and one attempt that can't be used
 * to look into our network. What is sent, when, and how often again is the program's own.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { lookup as dnsLookup } from 'node:dns/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { CodedError } from '#common/errors/index.ts';
import { isGlobalUnicast, parseAddress } from '#common/ip/index.ts';

// Sends one attempt, to an address that has been looked at first.
//
// The name is resolved once, every address it has must be allowed, and the connection goes to one of exactly those: a
// name that answers differently a moment later changes nothing. Redirects are not followed, and what the receiver says
// beyond its status is not read, unless the sender has to understand it, so that an endpoint can't be used to look into our
// network.

export interface DeliveryRequest {
  /** Default `POST`. */
  method?: 'POST' | 'PATCH';
  headers?: Readonly<Record<string, string>>;
  /** JSON. */
  body: string;
  /** Only where the sender has to understand the answer. */
  readsAnswer?: boolean;
}

export interface Answer extends Outcome {
  /** What the receiver said, up to 64 KiB, where it was asked for. */
  body?: string;
}

export interface Outcome {
  /** null where no answer came. */
  statusCode: number | null;
  /** null when the receiver took it; else why not, in words of ours. */
  error: string | null;
}

export interface Address {
  address: string;
  family: number;
}

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<Address[]>;

export const resolveByDns: Resolve = (host) => dnsLookup(host, { all: true, verbatim: true });

const timeoutMs = 15_000;
/** Of the connection alone, with TLS: a receiver that is there answers this in a fraction. */
const connectMs = 4_000;
const answerBytesMax = 65_536;
/** How long the rest of an answer may take once its status is known. */
const drainMs = 1_000;

/** Never throws. */
export async function postDelivery(
  target: string,
  request: DeliveryRequest,
  options: { rules: TargetRules; resolve: Resolve; signal: AbortSignal },
): Promise<Answer> {
  const url = new URL(target);
  const limit = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const address = await findAddress(hostOf(url), options, limit);
    if (typeof address === 'string') return { statusCode: null, error: address };
    const { statusCode, answer } = await send(url, address, request, limit);
    return { statusCode, error: refusalOf(statusCode), ...(request.readsAnswer ? { body: answer } : {}) };
  } catch (error) {
    return { statusCode: null, error: describeFailure(error, limit) };
  }
}

/** An address to connect to, or why there is none. */
async function findAddress(
  host: string,
  options: { rules: TargetRules; resolve: Resolve },
  signal: AbortSignal,
): Promise<Address | string> {
  const family = isIP(host);
  const found = family > 0 ? [{ address: host, family }] : await abortable(options.resolve(host), signal);
  if (found.length === 0) return 'the name does not resolve';
  // One forbidden address among them is enough: which of them a connection takes must not matter.
  if (!found.every((one) => isAllowedAddress(one.address, options.rules)))
    return 'the name leads to an address that is not on the public internet';
  return found[0]!;
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    ),
  ]);
}

function send(
  url: URL,
  pinned: Address,
  { method = 'POST', headers, body }: DeliveryRequest,
  signal: AbortSignal,
): Promise<{ statusCode: number; answer: string }> {
  const bytes = Buffer.from(body, 'utf8');
  const options: RequestOptions = {
    method,
    hostname: hostOf(url),
    port: url.port,
    path: `${url.pathname}${url.search}`,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': bytes.length,
      'user-agent': 'svc-webhooks/1',
      connection: 'close',
    },
    // A connection of its own, to the address that was looked at.
    agent: false,
    lookup: (_host, wish, done) => {
      if (wish.all) (done as (error: null, all: Address[]) => void)(null, [pinned]);
      else done(null, pinned.address, pinned.family);
    },
    maxHeaderSize: 16_384,
    signal,
  };
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(options, (response) => {
      const statusCode = response.statusCode!;
      let length = 0;
      const pieces: Buffer[] = [];
      const finish = () => {
        clearTimeout(timer);
        resolve({ statusCode, answer: Buffer.concat(pieces).toString('utf8') });
        request.destroy();
      };
      const timer = setTimeout(finish, drainMs);
      response.on('data', (piece: Buffer) => {
        length += piece.length;
        if (length > answerBytesMax) return finish();
        pieces.push(piece);
      });
      response.on('end', finish).on('error', finish);
    });
    // A receiver that accepts no connection must not hold a worker for as long as one that thinks.
    const connecting = setTimeout(
      () => request.destroy(Object.assign(new Error('connect'), { code: 'ETIMEDOUT' })),
      connectMs,
    );
    request.on('socket', (socket) => {
      const isReady = url.protocol === 'https:' ? 'secureConnect' : 'connect';
      socket.once(isReady, () => clearTimeout(connecting));
    });
    request.on('close', () => clearTimeout(connecting));
    request.on('error', reject);
    request.end(bytes);
  });
}

function refusalOf(statusCode: number): string | null {
  if (statusCode >= 200 && statusCode < 300) return null;
  if (statusCode >= 300 && statusCode < 400)
    return `the receiver answered ${statusCode}, and redirects are not followed`;
  return `the receiver answered ${statusCode}`;
}

function describeFailure(error: unknown, limit: AbortSignal): string {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (limit.aborted || code === 'ETIMEDOUT') return 'the receiver did not answer in time';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'ENODATA') return 'the name does not resolve';
  if (code === 'ECONNREFUSED') return 'the connection was refused';
  if (/^(CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code))
    return `the certificate is not accepted (${code})`;
  return `the connection broke${/^[A-Z_]{3,40}$/.test(code) ? ` (${code})` : ''}`;
}

/** How a secret is shown, once. */
export function formatSecret(secret: Buffer): string {
  return `whsec_${secret.toString('base64')}`;
}

export function mintSecret(): Buffer {
  return randomBytes(32);
}

/** The headers of one attempt, by Standard Webhooks; several secrets give several signatures, and one that fits is enough. */
export function signDelivery(
  secrets: readonly Buffer[],
  id: string,
  timestampSeconds: number,
  body: string,
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`${id}.${timestampSeconds}.${body}`).digest('base64');
    return `v1,${mac}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}

// Which addresses deliveries may go to.

export interface TargetRules {
  /** Lab and demo worlds: http, and addresses that are not on the internet. */
  allowPrivate: boolean;
}

const urlLengthMax = 500;

/** The endpoint's address in its one spelling; throws `webhooks.invalid` for what may not be one. */
export function parseEndpointUrl(text: string, rules: TargetRules): string {
  const url = URL.parse(text.trim());
  if (url === null || text.length > urlLengthMax)
    throw invalidWebhook('Give a whole address, such as https://example.com/hook.');
  if (url.protocol !== 'https:' && !(rules.allowPrivate && url.protocol === 'http:'))
    throw invalidWebhook('The address must begin with https://, so that deliveries are encrypted.');
  if (url.username !== '' || url.password !== '')
    throw invalidWebhook('The address must not hold a name or a password.');
  const port = Number(url.port || 443);
  if (!rules.allowPrivate && port !== 443 && port < 1_024)
    throw invalidWebhook('The port must be 443, or 1024 and above.');
  const literal = parseAddress(hostOf(url));
  if (literal !== null && !isAllowedAddress(hostOf(url), rules))
    throw invalidWebhook('The address must be on the public internet.');
  url.hash = '';
  return url.href;
}

/** The host without the brackets of an IPv6 address. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** True for an address that deliveries may go to. */
export function isAllowedAddress(address: string, rules: TargetRules): boolean {
  if (rules.allowPrivate) return true;
  const bytes = parseAddress(address);
  return bytes !== null && isGlobalUnicast(bytes);
}

/** An error in the configuration of a webhook, with a message for the person who configures it. */
/** `field`: which of the endpoint's it is about. */
export function invalidWebhook(message: string, field = 'url'): CodedError {
  return new CodedError('webhooks.invalid', message, { field });
}
