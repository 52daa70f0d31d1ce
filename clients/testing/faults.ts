/**
 * What broke clients of other providers, by their public reports: how the server behaves, what a client asks for, and what
 * its caller must get. A server plays each case, so it is tried over a real connection.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

/** One answer of the server, or what comes instead of one. */
interface Step {
  status?: number;
  headers?: Record<string, string>;
  /** A text is sent as it is, anything else as JSON. */
  body?: unknown;
  /** `drop`: the connection ends without an answer; `cut`: within the body; `split`: the body comes byte by byte; `silent`: never. */
  how?: 'drop' | 'cut' | 'cut chunk' | 'split' | 'gzip' | 'silent';
}

export interface Case {
  /** The public report; `ours` where it is our own idea. */
  report: string;
  title: string;
  steps: readonly Step[];
  call: { id: string; path?: readonly (number | string)[]; body?: object; ifMatch?: string };
  /** What the caller gets; a list is all of its items. */
  gives?: unknown;
  /** Or the error that it gets, by its name without `Error`; `Connection` where no usable answer came. */
  throws?: string;
  /** Undefined: attempts may end before they arrive. */
  requests?: number;
  /** Time limit of an attempt, in seconds. */
  seconds?: number;
}

const html = '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>';
const page = (status: number): Step => ({ status, headers: { 'content-type': 'text/html' }, body: html });
const refusal = (
  status: number,
  code: string,
  more: object = {},
  headers: Record<string, string> = {},
): Step => ({
  status,
  headers,
  body: { error: { code, message: 'No.', request_id: 'req_1', retryable: false, doc_url: '/', ...more } },
});
const read = { id: 'readServer', path: [1] };
const create = { id: 'createServer', body: { plan: 'kvm-1', image: 'debian-13' } };
const server = { id: 1, name: 'web-1' };
const listOf = (ids: readonly number[], cursor: string | null): Step => ({
  body: {
    servers: ids.map((id) => ({ id })),
    pagination: { limit: 2, total: 3, has_more: cursor !== null, next_cursor: cursor },
  },
});
const text = 'naïve — 日本語 \u{1f680} \u05e9\u05dc\u05d5\u05dd';

export const cases: readonly Case[] = [
  {
    report: 'digitalocean/terraform-provider-digitalocean#377',
    title: 'a read survives a 504 with a page',
    steps: [page(504), { body: server }],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'linode/linodego#144',
    title: 'a 502 with an empty body is repeated',
    steps: [{ status: 502, body: '' }, { body: server }],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'linode/linodego#273',
    title: 'a page with status 200 is no answer',
    steps: [page(200), page(200), page(200), page(200), page(200)],
    call: read,
    throws: 'Connection',
    requests: 5,
  },
  {
    report: 'linode/terraform-provider-linode#1532',
    title: 'a create survives a 502, under one idempotency key',
    steps: [page(502), { status: 201, body: server }],
    call: create,
    gives: server,
    requests: 2,
  },
  {
    report: 'digitalocean/godo#173',
    title: 'an intermittent 503 is repeated',
    steps: [refusal(503, 'unavailable', { retryable: true }), { body: server }],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'cloudflare/cloudflare-go#4243',
    title: 'a body that ends early is repeated',
    steps: [{ body: server, how: 'cut' }, { body: server }],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'linode/terraform-provider-linode#2389',
    title: 'a chunked body that ends early is repeated',
    steps: [{ body: server, how: 'cut chunk' }, { body: server }],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'hetznercloud/terraform-provider-hcloud#469',
    title: 'a create whose answer was lost is the same create again',
    steps: [{ how: 'drop' }, { status: 201, body: server }],
    call: create,
    gives: server,
    requests: 2,
  },
  {
    report: 'syself/cluster-api-provider-hetzner#2167',
    title: 'a change under If-Match whose answer was lost is not repeated',
    steps: [{ how: 'drop' }],
    call: { id: 'updateServer', path: [1], body: { name: 'a' }, ifMatch: '"t"' },
    throws: 'Connection',
    requests: 1,
  },
  {
    report: 'hashicorp/terraform#4455',
    title: 'a server that never answers ends at the time limit',
    steps: Array.from({ length: 5 }, (): Step => ({ how: 'silent' })),
    call: read,
    throws: 'Connection',
    seconds: 0.05,
  },
  {
    report: 'e2b-dev/E2B#1797',
    title: 'a limit of requests is waited out',
    steps: [refusal(429, 'rate_limited', { retryable: true }, { 'retry-after': '1' }), { body: server }],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'eth-cscs/pyfirecrest#118',
    title: 'a Retry-After that is a date breaks nothing',
    steps: [
      refusal(429, 'rate_limited', { retryable: true }, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }),
    ],
    call: read,
    throws: 'RateLimited',
    requests: 1,
  },
  {
    report: 'DNSControl/dnscontrol#636',
    title: 'a limit that ends now, by a clock that is wrong, is repeated at once',
    steps: [
      refusal(
        429,
        'rate_limited',
        { retryable: true },
        { 'retry-after': '0', date: 'Thu, 01 Jan 2015 00:00:00 GMT' },
      ),
      { body: server },
    ],
    call: read,
    gives: server,
    requests: 2,
  },
  {
    report: 'digitalocean/terraform-provider-digitalocean#473',
    title: 'a limit beyond the deadline is an error at once',
    steps: [refusal(429, 'rate_limited', { retryable: true }, { 'retry-after': '3600' })],
    call: read,
    throws: 'RateLimited',
    requests: 1,
  },
  {
    report: 'linode/linode_api4-python#110',
    title: 'a busy server is asked again',
    steps: [
      refusal(409, 'conflict', { reason: 'server_busy', retryable: true }, { 'retry-after': '1' }),
      { status: 202, body: { id: 7 } },
    ],
    call: { id: 'actOnServer', path: [1], body: { action: 'stop' } },
    gives: { id: 7 },
    requests: 2,
  },
  {
    report: 'vultr/vultr-node#394',
    title: 'a 412 without a body is an error that says so',
    steps: [{ status: 412, body: '' }],
    call: { id: 'updateServer', path: [1], body: { name: 'a' }, ifMatch: '"t"' },
    throws: 'Connection',
    requests: 1,
  },
  {
    report: 'hetznercloud/terraform-provider-hcloud#913',
    title: 'labels with empty values, and no labels, stay what they are',
    steps: [{ body: { labels: { k3s: '' }, tags: {}, list: [] } }],
    call: { id: 'updateServer', path: [1], body: { labels: { k3s: '' } } },
    gives: { labels: { k3s: '' }, tags: {}, list: [] },
    requests: 1,
  },
  {
    report: 'daytonaio/daytona#4575',
    title: 'a status that is newer than the client is handed on',
    steps: [{ body: { ...server, status: 'hibernating', added: { later: [1] } } }],
    call: read,
    gives: { ...server, status: 'hibernating', added: { later: [1] } },
    requests: 1,
  },
  {
    report: 'SAP/cloud-sdk-java#572',
    title: 'null where a word of a list was documented is null',
    steps: [{ body: { ...server, status: null, current_action: null } }],
    call: read,
    gives: { ...server, status: null, current_action: null },
    requests: 1,
  },
  {
    report: 'linode/linode-cli#161',
    title: 'names in any script arrive whole, in pieces of a byte',
    steps: [{ body: { name: text }, how: 'split' }],
    call: read,
    gives: { name: text },
    requests: 1,
  },
  {
    report: 'ngine-io/ansible-collection-vultr#31',
    title: 'names in any script are sent whole',
    steps: [{ status: 201, body: server }],
    call: { id: 'createServer', body: { ...create.body, name: text } },
    gives: server,
    requests: 1,
  },
  {
    report: 'Wiredcraft/dopy#29',
    title: 'a list is all of its pages, an empty one in the middle too',
    steps: [listOf([1, 2], 'a'), listOf([], 'b'), listOf([3], null)],
    call: { id: 'listServers' },
    gives: [{ id: 1 }, { id: 2 }, { id: 3 }],
    requests: 3,
  },
  {
    report: 'rackerlabs/otter#490',
    title: 'a deletion whose answer was lost has happened',
    steps: [{ how: 'drop' }, refusal(404, 'not_found')],
    call: { id: 'deleteNetwork', path: [1] },
    gives: null,
    requests: 2,
  },
  {
    report: 'zededa/terraform-provider-zedcloud#216',
    title: 'a deletion of what never was is a 404, and a 204 has no body',
    steps: [refusal(404, 'not_found')],
    call: { id: 'deleteNetwork', path: [1] },
    throws: 'NotFound',
    requests: 1,
  },
  {
    report: 'planetscale/cli#1305',
    title: 'a redirect is not followed: it would take the key along',
    steps: Array.from({ length: 5 }, (): Step => ({ status: 302, headers: { location: '/elsewhere' } })),
    call: read,
    throws: 'Connection',
    requests: 5,
  },
  {
    report: 'vultr/whmcs-vultr#74',
    title: 'an error with a code that is newer than the client is an error of the API',
    steps: [refusal(418, 'teapot', { reason: 'short_and_stout' })],
    call: read,
    throws: 'Api',
    requests: 1,
  },
  {
    report: 'ours',
    title: 'a compressed answer is read',
    steps: [{ body: server, how: 'gzip' }],
    call: read,
    gives: server,
    requests: 1,
  },
];

export interface Received {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: string;
}

/** Plays the cases below `/0`, `/1` …; each in turn, from its first step. */
export async function playCases() {
  const received: Received[][] = cases.map(() => []);
  const other = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const [, index, path] = /^\/(\d+)(.*)$/.exec(request.url!) ?? [];
    const log = received[Number(index)];
    if (log === undefined) return play({ body: { followed: true } }, response);
    log.push({ method: request.method!, path: path!, headers: request.headers, body });
    play(cases[Number(index)]!.steps[log.length - 1] ?? { how: 'drop' }, response);
  });
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  return {
    received,
    urlOf: (index: number) => `http://127.0.0.1:${(other.address() as AddressInfo).port}/${index}`,
    /** For another client. */
    forget() {
      for (const log of received) log.length = 0;
    },
    close() {
      other.closeAllConnections();
      other.close();
    },
  };
}

function play({ status = 200, headers = {}, body = '', how }: Step, response: ServerResponse): void {
  if (how === 'silent') return;
  if (how === 'drop') return void response.socket!.destroy();
  const isText = typeof body === 'string';
  const bytes = Buffer.from(isText ? body : JSON.stringify(body));
  const all = { ...(isText ? {} : { 'content-type': 'application/json' }), ...headers };
  if (how === 'gzip')
    return void response.writeHead(status, { ...all, 'content-encoding': 'gzip' }).end(gzipSync(bytes));
  if (how === 'cut' || how === 'cut chunk') {
    response.writeHead(status, how === 'cut' ? { ...all, 'content-length': bytes.length } : all);
    response.write(bytes.subarray(0, 4), () => response.socket!.destroy());
    return;
  }
  response.writeHead(status, all);
  if (how === 'split') for (const byte of bytes) response.write(Buffer.of(byte));
  response.end(how === 'split' ? '' : bytes);
}

/** What must hold of every case, for every client: how often it asked, and that a create is one create. */
export function faultsOf(index: number, log: readonly Received[]): string[] {
  const { requests, call } = cases[index]!;
  const keys = new Set(log.map(({ headers }) => headers['idempotency-key']));
  const bodies = new Set(log.map(({ body }) => body));
  return [
    ...(requests === undefined || log.length === requests ? [] : [`${log.length} requests`]),
    ...(call.id !== 'createServer' || (keys.size === 1 && !keys.has(undefined))
      ? []
      : ['other idempotency keys']),
    ...(call.body === undefined ||
    [...bodies].every((body) => JSON.stringify(JSON.parse(body)) === JSON.stringify(call.body))
      ? []
      : ['another body']),
  ];
}
