/**
 * An HTTP client that shows an answer as it was on the wire: every header with its spelling and in its order, also those
 * that `fetch` hides, so that two answers can be compared byte by byte.
 */
import { Agent, request } from 'node:http';

export interface RawRequest {
  method: string;
  path: string;
  headers?: readonly (readonly [string, string])[];
  body?: string | undefined;
}

export interface RawAnswer {
  status: number;
  /** Name and value, as sent. */
  headers: readonly (readonly [string, string])[];
  text: string;
}

export type RawClient = ReturnType<typeof createRawClient>;

export function createRawClient(url: string, connections = 24) {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    send: (wanted: RawRequest): Promise<RawAnswer> =>
      new Promise<RawAnswer>((resolve, reject) => {
        const sent = request(
          { hostname, port, agent, method: wanted.method, path: wanted.path },
          (answer) => {
            const pieces: Buffer[] = [];
            answer.on('data', (piece: Buffer) => pieces.push(piece));
            answer.on('error', reject);
            answer.on('end', () =>
              resolve({
                status: answer.statusCode!,
                headers: pairsOf(answer.rawHeaders),
                text: Buffer.concat(pieces).toString('utf8'),
              }),
            );
          },
        );
        sent.on('error', reject);
        for (const [name, values] of groupHeaders(wanted.headers ?? [])) sent.setHeader(name, values);
        if (wanted.body !== undefined) sent.setHeader('content-length', Buffer.byteLength(wanted.body));
        sent.end(wanted.body);
      }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/**
 * What an answer says, as one text, without what differs by nature: its id, the time, numbers that count up, and the
 * request's own address where v1 points at its successor.
 */
export function comparable(answer: RawAnswer, asked: string): string {
  const successor = asked.split('?')[0]!.replace('/api/v1/', '/api/v2/');
  const headers = answer.headers.map(
    ([name, value]) => `${name}: ${maskHeader(name.toLowerCase(), value).replace(`${successor}>`, 'ASKED>')}`,
  );
  return [answer.status, ...headers, '', maskIds(answer.text)].join('\n');
}

function maskHeader(name: string, value: string): string {
  if (name === 'date') return 'DATE';
  if (name === 'x-api-quota-used' || name === 'x-api-quota-remaining') return 'NUMBER';
  if (name === 'ratelimit') return value.replaceAll(/(r|t)=\d+/g, '$1=N');
  return maskIds(value);
}

function maskIds(text: string): string {
  return text.replaceAll(/req_[0-9A-HJKMNP-TV-Z]{26}/g, 'REQUEST');
}

function pairsOf(raw: readonly string[]): [string, string][] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]!] as [string, string]] : []));
}

function groupHeaders(headers: readonly (readonly [string, string])[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [name, value] of headers) groups.set(name, [...(groups.get(name) ?? []), value]);
  return groups;
}
