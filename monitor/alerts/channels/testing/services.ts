/**
 * The services that alert channels tell, in a process of its own, written from their public documents and sharing no code
 * with the sender: each checks what it is given as strictly as its documents do, and keeps the state that a person would see.
 *
 * Writes one line of JSON for each request that it took or refused.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

type Body = Record<string, unknown>;

export interface Seen {
  service: string;
  /** What a person sees there now, or why the request was refused. */
  shows: string;
}

interface Reply {
  status: number;
  body: unknown;
  seen: Seen;
}

export const keys = {
  slack: 'xoxb-0123456789-abcdefghij',
  telegram: '123456789:AAbbCCddEEffGGhhIIjjKKllMMnnOOpp',
  discord: 'kkeeyy_of-the-webhook',
  teams: 'sig-of-the-workflow',
  ntfy: 'tk_abcdefghijklmnop',
  pagerduty: '0123456789abcdef0123456789ABCDEF',
  opsgenie: 'eb243592-faa2-4ba2-a551-1afdf565c889',
};

let last = 1_000;
const next = () => {
  last += 1;
  return String(last);
};
const messages = new Map<string, string>();
const open = new Set<string>();

/** Refuses members that the document does not name, and those of another type. */
function check(body: Body, shape: Record<string, string>): string | null {
  for (const [name, value] of Object.entries(body)) {
    const type = shape[name]?.replace('?', '');
    if (type === undefined) return `${name} is unknown`;
    if (type === 'array' ? !Array.isArray(value) : typeof value !== type) return `${name} is no ${type}`;
  }
  const missing = Object.entries(shape).find(([name, type]) => !type.endsWith('?') && !(name in body));
  return missing ? `${missing[0]} is missing` : null;
}

const services: Record<string, (request: IncomingMessage, path: string, body: Body) => Reply> = {
  slack(request, path, body) {
    const refuse = (error: string) => reply('slack', 200, { ok: false, error }, `refused: ${error}`);
    if (path !== '/api/chat.postMessage') return reply('slack', 404, {}, 'no such method');
    if (request.headers.authorization !== `Bearer ${keys.slack}`) return refuse('invalid_auth');
    const fault = check(body, {
      channel: 'string',
      text: 'string',
      unfurl_links: 'boolean?',
      thread_ts: 'string?',
    });
    if (fault) return refuse('invalid_arguments');
    if (body.channel !== 'C0123456789') return refuse('channel_not_found');
    if (body.thread_ts !== undefined && !messages.has(`slack ${body.thread_ts}`))
      return refuse('thread_not_found');
    const ts = `1700000000.${next()}`;
    messages.set(`slack ${ts}`, String(body.text));
    const thread = body.thread_ts
      ? `in the thread of [${messages.get(`slack ${body.thread_ts}`)!.split('\n')[0]}] `
      : '';
    return reply('slack', 200, { ok: true, channel: body.channel, ts }, `${thread}${body.text}`);
  },
  telegram(_request, path, body) {
    const refuse = (code: number, description: string) =>
      reply('telegram', code, { ok: false, error_code: code, description }, `refused: ${description}`);
    if (path !== `/bot${keys.telegram}/sendMessage`) return refuse(401, 'Unauthorized');
    const fault = check(body, {
      ...{ chat_id: 'string', text: 'string', link_preview_options: 'object?', reply_parameters: 'object?' },
    });
    if (fault) return refuse(400, fault);
    if ([...String(body.text)].length > 4096) return refuse(400, 'message is too long');
    const { message_id } = (body.reply_parameters ?? {}) as { message_id?: number };
    const answered = messages.get(`telegram ${message_id}`);
    const id = Number(next());
    messages.set(`telegram ${id}`, String(body.text));
    const shows = `${answered ? `in reply to [${answered.split('\n')[0]}] ` : ''}${body.text}`;
    return reply('telegram', 200, { ok: true, result: { message_id: id } }, shows);
  },
  discord(request, path, body) {
    const [, , , , key, , edited] = path.split('?')[0]!.split('/');
    if (key !== keys.discord)
      return reply('discord', 401, { message: 'Invalid Webhook Token' }, 'refused: key');
    const fault = check(body, { embeds: 'array', allowed_mentions: 'object' });
    const [embed] = (body.embeds ?? []) as Body[];
    const wrong =
      fault ??
      check(embed ?? {}, {
        ...{ title: 'string', description: 'string', url: 'string?', color: 'number', timestamp: 'string' },
      });
    if (wrong || String(embed?.title).length > 256 || String(embed?.description).length > 4096)
      return reply('discord', 400, { code: 50_035 }, `refused: ${wrong ?? 'too long'}`);
    const colour = Number(embed?.color).toString(16).padStart(6, '0');
    const text = `#${colour} ${embed?.title}\n${embed?.description}`;
    if (request.method === 'PATCH') {
      if (!messages.has(`discord ${edited}`))
        return reply('discord', 404, { code: 10_008 }, 'refused: no such message');
      messages.set(`discord ${edited}`, text);
      return reply('discord', 200, { id: edited }, `edited to ${text}`);
    }
    const id = next();
    messages.set(`discord ${id}`, text);
    // Without `wait` there is no answer.
    return reply('discord', path.endsWith('?wait=true') ? 200 : 204, { id }, text);
  },
  teams(_request, path, body) {
    if (!path.includes(keys.teams)) return reply('teams', 401, {}, 'refused: key');
    const [attachment] = (body.attachments ?? []) as { contentType?: string; content?: Body }[];
    const fault = check(body, { type: 'string', attachments: 'array' });
    const card = attachment?.content;
    if (
      fault ||
      attachment?.contentType !== 'application/vnd.microsoft.card.adaptive' ||
      card?.type !== 'AdaptiveCard'
    )
      return reply('teams', 400, {}, `refused: ${fault ?? 'no card'}`);
    const parts = card.body as {
      type: string;
      text?: string;
      color?: string;
      facts?: { title: string; value: string }[];
    }[];
    const shows = parts.map((part) =>
      part.type === 'TextBlock'
        ? `${part.color} ${part.text}`
        : part.facts!.map(({ title, value }) => `${title}: ${value}`).join('\n'),
    );
    return reply('teams', 202, '', shows.join('\n'));
  },
  ntfy(request, path, body) {
    const refuse = (status: number, error: string) =>
      reply('ntfy', status, { http: status, error }, `refused: ${error}`);
    if (request.headers.authorization !== `Bearer ${keys.ntfy}`) return refuse(401, 'unauthorized');
    const fault = check(body, {
      ...{
        topic: 'string',
        title: 'string?',
        message: 'string',
        priority: 'number?',
        tags: 'array?',
        click: 'string?',
      },
      sequence_id: 'string?',
    });
    if (path !== '/' || fault) return refuse(400, fault ?? 'page not found');
    if (!/^[-_A-Za-z0-9]{1,64}$/.test(String(body.sequence_id))) return refuse(400, 'sequence ID invalid');
    const former = messages.get(`ntfy ${body.sequence_id}`);
    messages.set(`ntfy ${body.sequence_id}`, String(body.title));
    const shows = `${former ? `in place of [${former}] ` : ''}${body.priority} ${body.tags} ${body.title}\n${body.message}`;
    return reply('ntfy', 200, { id: next() }, shows);
  },
  pagerduty(_request, path, body) {
    const refuse = (fault: string) =>
      reply('pagerduty', 400, { status: 'invalid event', errors: [fault] }, `refused: ${fault}`);
    const isTrigger = body.event_action === 'trigger';
    const fault = check(body, {
      ...{ routing_key: 'string', event_action: 'string', dedup_key: isTrigger ? 'string?' : 'string' },
      ...(isTrigger ? { payload: 'object', client: 'string?', client_url: 'string?' } : {}),
    });
    if (path !== '/v2/enqueue' || fault) return refuse(fault ?? 'no such path');
    if (body.routing_key !== keys.pagerduty) return refuse('Invalid routing key');
    const payload = (body.payload ?? {}) as Body;
    const wrong =
      isTrigger &&
      check(payload, {
        ...{
          summary: 'string',
          source: 'string',
          severity: 'string',
          timestamp: 'string?',
          component: 'string?',
        },
        ...{ group: 'string?', class: 'string?', custom_details: 'object?' },
      });
    if (wrong) return refuse(wrong);
    if (isTrigger && !['critical', 'error', 'warning', 'info'].includes(String(payload.severity)))
      return refuse('severity');
    const incident = `pagerduty ${body.dedup_key}`;
    if (isTrigger) open.add(incident);
    const wasOpen = isTrigger || open.delete(incident);
    const shows = isTrigger
      ? `${payload.severity} ${payload.summary}`
      : wasOpen
        ? 'resolved'
        : 'nothing to resolve';
    return reply(
      'pagerduty',
      202,
      { status: 'success', message: 'Event processed', dedup_key: body.dedup_key },
      shows,
    );
  },
  opsgenie(request, path, body) {
    if (request.headers.authorization !== `GenieKey ${keys.opsgenie}`)
      return reply('opsgenie', 401, { message: 'Could not authenticate' }, 'refused: key');
    const closing = /^\/v2\/alerts\/([^/]+)\/close\?identifierType=alias$/.exec(path);
    const fault = check(body, {
      ...{ source: 'string?', note: 'string?' },
      ...(closing
        ? {}
        : {
            ...{
              message: 'string',
              alias: 'string?',
              description: 'string?',
              entity: 'string?',
              priority: 'string?',
            },
            ...{ tags: 'array?', details: 'object?' },
          }),
    });
    if (fault || String(body.message ?? '').length > 130 || !(closing || path === '/v2/alerts'))
      return reply('opsgenie', 422, { message: fault }, `refused: ${fault ?? 'too long'}`);
    const alert = `opsgenie ${closing?.[1] ?? body.alias}`;
    if (!closing) open.add(alert);
    const wasOpen = !closing || open.delete(alert);
    const shows = closing ? (wasOpen ? 'closed' : 'nothing to close') : `${body.priority} ${body.message}`;
    return reply('opsgenie', 202, { result: 'Request will be processed', requestId: next() }, shows);
  },
};

const reply = (service: string, status: number, body: unknown, shows: string): Reply => ({
  ...{ status, body, seen: { service, shows } },
});

function run(): void {
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const [, name = '', path = ''] = /^\/([a-z]+)(.*)$/.exec(request.url!) ?? [];
    const { status, body, seen } = services[name]!(
      request,
      path,
      JSON.parse(Buffer.concat(pieces).toString()) as Body,
    );
    process.stdout.write(`${JSON.stringify(seen)}\n`);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(status === 204 ? undefined : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) run();
