/**
 * `svcctl mcp`: the calls of the API as tools of the Model Context Protocol, on standard input and output.
 *
 * A read key has the tools that read. With a full key a model changes things under two rules: what has a dry run is tried
 * as one first, with the same arguments, and what destroys a server names the server. Secrets that an answer holds once
 * are not handed to the model, and keys are left to people.
 *
 * The protocol is spoken here: a line of JSON-RPC each way. The official SDK would take the place of forty lines, and bring its core and zod
 * into a tool of one file.
 */
import type { Call, Field } from '../calls.ts';
import type { CallOptions, CallRequest } from '../typescript/caller.ts';
import type { Client } from '../typescript/client.ts';
import { ApiError } from '../typescript/errors.ts';

/** Versions of the protocol whose messages are the same for what is used here, the newest first. */
const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const secretFields = ['root_password', 'secret', 'token'];

type Json = Record<string, unknown>;

interface Message {
  id?: number | string | null;
  method?: unknown;
  params?: Json;
}

/** A fault of the caller's: the protocol's code, and what is wrong. */
class ProtocolError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface McpOptions {
  calls: readonly Call[];
  version: string;
  client: Client;
  /** Lines. */
  input: AsyncIterable<string>;
  write(line: string): void;
}

/** Answers until the input ends. */
export async function serveMcp({ calls, version, client, input, write }: McpOptions): Promise<void> {
  let offered: Promise<Map<string, Call>> | null = null;
  /** The tools of this key; asked for with the first request that needs them. */
  const toolsOfKey = () => {
    offered ??= client
      .readKey()
      .then(({ scope }) => {
        const open = calls.filter(
          (call) => call.scope === 'read' || (scope === 'full' && call.group !== 'key'),
        );
        return new Map(open.map((call) => [toolName(call), call]));
      })
      .catch((error: unknown) => {
        offered = null;
        throw error;
      });
    return offered;
  };
  const running = new Map<unknown, AbortController>();
  /** What was tried as a dry run: tool and arguments. */
  const tried = new Set<string>();

  async function respond(method: unknown, params: Json, id: unknown): Promise<unknown> {
    switch (method) {
      case 'initialize': {
        const wanted = String(params.protocolVersion);
        return {
          protocolVersion: protocolVersions.includes(wanted) ? wanted : protocolVersions[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'virtual-servers', version },
          instructions:
            'Virtual servers of one account. Call what costs with dry_run first and show the cost to the person. Ask before you destroy.',
        };
      }
      case 'ping':
        return {};
      case 'tools/list':
        return { tools: [...(await toolsOfKey()).values()].map(describeTool) };
      case 'tools/call': {
        const call = (await toolsOfKey()).get(String(params.name));
        if (call === undefined) throw new ProtocolError(-32_602, `there is no tool ${String(params.name)}`);
        const controller = new AbortController();
        running.set(id, controller);
        try {
          return await callTool({
            call,
            given: (params.arguments ?? {}) as Json,
            client,
            tried,
            signal: controller.signal,
          });
        } finally {
          running.delete(id);
        }
      }
      default:
        throw new ProtocolError(-32_601, `there is no method ${String(method)}`);
    }
  }

  async function take(line: string): Promise<void> {
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      return write(
        JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'this is not JSON' } }),
      );
    }
    const { id, method, params = {} } = message ?? {};
    if (method === 'notifications/cancelled') running.get(params.requestId)?.abort(new Error('cancelled'));
    // A notification has no answer.
    if (id === undefined) return;
    try {
      write(JSON.stringify({ jsonrpc: '2.0', id, result: await respond(method, params, id) }));
    } catch (error) {
      const code = error instanceof ProtocolError ? error.code : -32_603;
      write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: (error as Error).message } }));
    }
  }

  const pending = new Set<Promise<void>>();
  for await (const line of input) {
    if (line.trim() === '') continue;
    const one = take(line).finally(() => pending.delete(one));
    pending.add(one);
  }
  await Promise.all(pending);
}

export const toolName = ({ id }: Call) => id.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const fieldsOfCall = (call: Call): Field[] => [...call.inPath, ...call.inQuery, ...(call.body ?? [])];

const hasDryRun = (call: Call) => call.body?.some(({ name }) => name === 'dry_run') === true;

function describeTool(call: Call): object {
  const rules = [
    ...(hasDryRun(call) ? ['Call it with dry_run first, then with the same arguments.'] : []),
    ...(call.destroys ? ['Data is lost for good: server_name must be the name of the server.'] : []),
  ];
  const fields = fieldsOfCall(call);
  const needed = [
    ...fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    ...(call.destroys && !hasDryRun(call) ? ['server_name'] : []),
  ];
  return {
    name: toolName(call),
    title: call.summary,
    description: [call.description, ...rules].join(' '),
    inputSchema: {
      type: 'object',
      properties: {
        ...Object.fromEntries(
          fields.map(({ name, description, schema }) => [
            name,
            { ...schema, ...(description ? { description } : {}) },
          ]),
        ),
        ...(call.destroys
          ? { server_name: { type: 'string', description: 'Name of the server that loses its data.' } }
          : {}),
        ...(call.takesPrefer
          ? {
              wait_seconds: {
                type: 'integer',
                minimum: 0,
                maximum: 30,
                description: 'Answer when it is over, or after this time.',
              },
            }
          : {}),
        tenant: { type: 'string', description: 'Workspace, by id or slug.' },
      },
      required: needed,
      additionalProperties: false,
    },
    annotations: {
      readOnlyHint: call.scope === 'read',
      destructiveHint: call.destroys || call.method === 'DELETE',
      idempotentHint: call.method !== 'POST' || call.isIdempotent,
    },
  };
}

interface ToolCall {
  call: Call;
  given: Json;
  client: Client;
  tried: Set<string>;
  signal: AbortSignal;
}

/** What the model gets: the answer as JSON, or what is wrong, which it may put right. */
async function callTool({ call, given, client, tried, signal }: ToolCall): Promise<object> {
  const { server_name: serverName, wait_seconds: waitSeconds, tenant, ...fields } = given;
  const known = new Set(fieldsOfCall(call).map(({ name }) => name));
  const strangers = Object.keys(fields).filter((name) => !known.has(name));
  const missing = fieldsOfCall(call).filter(
    ({ name, isRequired }) => isRequired && fields[name] === undefined,
  );
  if (strangers.length > 0) return refuse(`There is no argument ${strangers.join(', ')}.`);
  if (missing.length > 0) return refuse(`Missing: ${missing.map(({ name }) => name).join(', ')}.`);
  const { dry_run: isDry, ...wish } = fields;
  const key = JSON.stringify([call.id, tenant, Object.entries(wish).sort(([a], [b]) => (a < b ? -1 : 1))]);
  if (hasDryRun(call) && isDry !== true && !tried.has(key))
    return refuse(
      'Call it with the same arguments and dry_run: true first, and show the result to the person.',
    );
  const options = { tenant, signal, ...(waitSeconds === undefined ? {} : { waitSeconds }) } as CallOptions;
  try {
    if (call.destroys && isDry !== true) {
      const within = { tenant, signal } as CallOptions;
      const id = Number(fields.id);
      const isSnapshot = call.path.startsWith('/api/v2/snapshots/');
      const serverId = isSnapshot ? (await client.readSnapshot(id, within)).server_id : id;
      const { name } = await client.readServer(serverId, within);
      if (name !== serverName)
        return refuse(`server_name is not the name of server ${serverId}. Ask the person.`);
    }
    const answer = await client.call<unknown>(requestOf(call, fields, options));
    if (isDry === true) tried.add(key);
    else tried.delete(key);
    return {
      content: [
        { type: 'text', text: answer === undefined ? 'Done.' : JSON.stringify(withoutSecrets(answer)) },
      ],
    };
  } catch (error) {
    if (!(error instanceof ApiError)) return refuse((error as Error).message);
    const { code, reason, requestId, fields: faults, details } = error;
    return refuse(
      JSON.stringify({
        message: error.error.message,
        code,
        reason,
        request_id: requestId,
        fields: faults,
        details,
      }),
    );
  }
}

const refuse = (text: string) => ({ content: [{ type: 'text', text }], isError: true });

function requestOf(call: Call, fields: Json, options: CallOptions): CallRequest {
  const pick = (wanted: readonly Field[]) =>
    Object.fromEntries(
      wanted.filter(({ name }) => fields[name] !== undefined).map(({ name }) => [name, fields[name]]),
    );
  const body = pick(call.body ?? []);
  return {
    method: call.method,
    path: call.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(fields[name]))),
    query: call.inQuery.map(({ name }) => name),
    ...(call.body === null || (call.method === 'DELETE' && Object.keys(body).length === 0) ? {} : { body }),
    takesIdempotencyKey: call.takesIdempotencyKey,
    isIdempotent: call.isIdempotent,
    answersNothing: call.answersNothing,
    options: { ...pick(call.inQuery), ...options },
  };
}

function withoutSecrets(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutSecrets);
  if (node === null || typeof node !== 'object') return node;
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) =>
      secretFields.includes(name) && typeof value === 'string'
        ? [name, 'not shown to a model; set a new one in the portal or with svcctl']
        : [name, withoutSecrets(value)],
    ),
  );
}
