/**
 * The NVD's CVE API 2.0 as a process of its own: paging, totals, windows of change, keys, its limits, and every fault of its wire
 * that clients have met. It prints its port.
 *
 * `POST /testing/…` arranges it: `plan` (faults of the next requests), `clock` (its time stands at a test's), `records`, `asked`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type NvdRecord, records } from './records/index.ts';
import type { AskedNvd, NvdFault } from './start-nvd.ts';

const path = '/rest/json/cves/2.0';
const pageMax = 2_000;
const windowMaxMs = 120 * 86_400_000;
const validKey = '11111111-2222-3333-4444-555555555555';

let known: readonly NvdRecord[] = records;
let plan: NvdFault[] = [];
let pageRecordsMax = pageMax;
let nowMs: number | null = null;
const asked: AskedNvd[] = [];

const server = createServer((request, response) => {
  const url = new URL(request.url!, 'http://nvd');
  if (url.pathname.startsWith('/testing/')) void arrange(request, response, url.pathname.slice(9));
  else if (url.pathname === path) answer(request, response, url);
  else response.writeHead(404).end();
});

async function arrange(request: IncomingMessage, response: ServerResponse, what: string): Promise<void> {
  const body = JSON.parse(Buffer.concat(await request.toArray()).toString() || '{}');
  if (what === 'plan') plan = body.faults;
  if (what === 'page') pageRecordsMax = body.recordsMax;
  if (what === 'clock') nowMs = body.nowMs;
  if (what === 'records') known = body.records ?? records;
  response.end(JSON.stringify(what === 'asked' ? asked.splice(0) : {}));
}

function answer(request: IncomingMessage, response: ServerResponse, url: URL): void {
  const fault = plan.shift() ?? { kind: 'none' };
  const { headers } = request;
  asked.push({ atMs: nowMs ?? Date.now(), url: request.url!, headers, fault: fault.kind });
  const refuse = (status: number, message: string, more: Record<string, string> = {}) =>
    response.writeHead(status, { message, ...more }).end(status === 503 ? '<html>503</html>' : '');
  if (fault.kind === 'status')
    return void refuse(
      fault.status,
      'planned',
      fault.retryAfter === undefined ? {} : { 'retry-after': fault.retryAfter },
    );
  if (fault.kind === 'closed') return void request.socket.destroy();
  if (fault.kind === 'redirect')
    return void response.writeHead(302, { location: `http://127.0.0.1:${port()}${request.url}` }).end();
  if (headers.apikey !== undefined && headers.apikey !== validKey) return void refuse(404, 'Invalid apiKey.');
  const selected = select(url.searchParams);
  if (typeof selected === 'string') return void refuse(404, selected);
  const page = toPage(selected, url.searchParams, fault);
  if (page === null) return void refuse(404, 'Invalid parameter: page.');
  send(response, JSON.stringify(page), fault);
}

/** Records of a request, or what is wrong with it. */
function select(parameters: URLSearchParams): NvdRecord[] | string {
  const [start, end] = [parameters.get('lastModStartDate'), parameters.get('lastModEndDate')];
  if ((start === null) !== (end === null)) return 'Both lastModStartDate and lastModEndDate are needed.';
  const [startMs, endMs] = [Date.parse(start ?? ''), Date.parse(end ?? '')];
  if (start !== null && !(endMs >= startMs && endMs - startMs <= windowMaxMs)) return 'Invalid date range.';
  const name = parameters.get('virtualMatchString');
  if (name !== null && !/^cpe:2\.3:[aoh*]:[^:]+:[^:]+(:[^:]+){0,8}$/.test(name)) return 'Invalid CPE.';
  const prefix = name?.split(':').slice(0, 5).join(':');
  return known.filter(({ cve }) => {
    if (parameters.has('noRejected') && cve.vulnStatus === 'Rejected') return false;
    const modifiedMs = Date.parse(`${cve.lastModified}Z`);
    if (start !== null && (modifiedMs < startMs || modifiedMs > endMs)) return false;
    const names = (cve.configurations ?? []).flatMap(({ nodes }) =>
      nodes.flatMap(({ cpeMatch }) => cpeMatch),
    );
    return prefix === undefined || names.some(({ criteria }) => criteria.startsWith(`${prefix}:`));
  });
}

function toPage(selected: NvdRecord[], parameters: URLSearchParams, fault: NvdFault): object | null {
  const startIndex = Number(parameters.get('startIndex') ?? 0);
  const wanted = Number(parameters.get('resultsPerPage') ?? pageMax);
  if (!Number.isInteger(startIndex) || startIndex < 0 || !(wanted >= 1 && wanted <= pageMax)) return null;
  const page: unknown[] = selected.slice(startIndex, startIndex + Math.min(wanted, pageRecordsMax));
  if (fault.kind === 'malformed_record') page[0] = spoil(page[0] as NvdRecord | undefined);
  if (fault.kind === 'foreign_value') page[0] = 7;
  if (fault.kind === 'empty_page') page.length = 0;
  const shift = fault.kind === 'total_changes' ? 1 : 0;
  return {
    resultsPerPage: page.length,
    startIndex: fault.kind === 'other_page' ? startIndex + 1 : startIndex,
    totalResults: fault.kind === 'no_total' ? undefined : selected.length + shift,
    format: 'NVD_CVE',
    version: '2.0',
    timestamp: new Date(nowMs ?? Date.now()).toISOString().slice(0, 23),
    vulnerabilities: page,
  };
}

const spoil = (record: NvdRecord | undefined) =>
  record && { cve: { ...record.cve, configurations: [{ nodes: 'broken' }] } };

function send(response: ServerResponse, text: string, { kind }: NvdFault): void {
  const half = text.slice(0, Math.floor(text.length / 2));
  const headers = { 'content-type': 'application/json' };
  if (kind === 'cut') {
    // The length says more than what comes.
    response.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(text) }).write(half);
    setImmediate(() => response.destroy());
  } else if (kind === 'slow') {
    // The rest never comes.
    response.writeHead(200, headers).write(half);
  } else if (kind === 'silent') {
    // Not even headers.
  } else if (kind === 'half_json') response.writeHead(200, headers).end(half);
  else if (kind === 'page_of_html') response.writeHead(200).end('<!doctype html><title>Maintenance</title>');
  else if (kind === 'null') response.writeHead(200, headers).end('null');
  else response.writeHead(200, headers).end(text);
}

const port = () => (server.address() as { port: number }).port;
server.listen(0, '127.0.0.1', () => process.stdout.write(`${port()}\n`));
// Ends with the test that started it, in any case.
process.stdin.on('end', () => process.exit(0)).resume();
