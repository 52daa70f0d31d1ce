/**
 * The monitor's client of the admin API: bounded in time and size, never redirected, never believing what it reads. Its
 * token goes over https, or within the machine.
 *
 * Every failure is one of a few fixed sentences (NET-4.10): what operations answered in an error is neither kept nor
 * logged, because it may hold anything.
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { CodedError } from '#common/errors/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import type { FeedContract } from '#contracts/admin-api/contract.ts';
import { Discovery, InventoryPage, projectPermissions, TargetsPage } from '#contracts/admin-api/schemas.ts';
import { parseStrictJson } from '#service-kit/http/index.ts';

export interface OperationsClient {
  /** What the token's project may do. */
  discover(): Promise<Discovery>;
  /** A page of virtual machines after this id; null as the next id ends the listing. */
  listVms(afterId: number | null, limit: number): Promise<InventoryPage>;
  /** A page of allocation targets; it may be empty while the cursor still moves (NET-2.3). */
  listTargets(afterId: number | null, limit: number): Promise<TargetsPage>;
  /** Posts a feed's request; the answer fits the contract's schema. */
  deliver(contract: FeedContract, request: unknown): Promise<unknown>;
}

export interface OperationsClientOptions {
  /** Without a trailing slash. */
  baseUrl: string;
  token: string;
  /** For a whole call, connecting and reading included. */
  timeoutMs?: number;
  /** The base URL may be http on another machine. */
  allowsInsecureHttp?: boolean;
}

export type OperationsFault =
  | 'insecure'
  | 'unreachable'
  | 'timeout'
  | 'redirected'
  | 'unauthorized'
  | 'permission_missing'
  | 'refused'
  | 'failed'
  | 'malformed'
  | 'stale';

const sentences: Record<OperationsFault, string> = {
  insecure:
    'The base URL is not encrypted, so the token is not sent to it. Enter an https address. Where nothing but svc uses the network, set SVC_ALLOW_INSECURE_HTTP=1 for the monitor instead.',
  unreachable: 'Operations could not be reached. Check the base URL and that operations runs.',
  timeout: 'Operations did not answer in time. The next run tries again.',
  redirected: 'Operations answered with a redirect, which is not followed. Enter the final base URL.',
  unauthorized:
    'Operations refused the token. Create a new token for the admin API project and enter it here.',
  permission_missing:
    'The admin API project lacks the permission for this feed. Edit the project in operations; the token stays valid.',
  refused: 'Operations refused the request as invalid.',
  failed: 'Operations reported an error of its own. The next run tries again.',
  malformed: 'The answer from operations was not understood or was cut off. The next run tries again.',
  stale:
    'The inventory from operations is more than 15 minutes old by its own time stamp, so nothing was taken from it. Check the clocks and whether operations reads from a replica that lags.',
};

/** A failed call; `message` is one of the fixed sentences and may be shown and stored. */
export class OperationsError extends CodedError {
  readonly fault: OperationsFault;
  /** The permission that operations missed, where it named one that we know. */
  readonly permission: string | null;
  /** Paths of the fields that a refusal named, such as `targets.0.series.3.pps`; its other words are not kept. */
  readonly refusedFields: readonly string[];

  constructor(
    fault: OperationsFault,
    permission: string | null = null,
    refusedFields: readonly string[] = [],
  ) {
    super(`operations.${fault}`, sentences[fault]);
    this.fault = fault;
    this.permission = permission;
    this.refusedFields = refusedFields;
  }
}

/** True when the next call would fail the same way, whatever it asks for. */
export function concernsEveryCall(fault: OperationsFault): boolean {
  return fault !== 'refused' && fault !== 'failed' && fault !== 'malformed';
}

/** The sentence for any thrown value; what is not from operations is ours and says only that. */
export function safeFaultText(error: unknown): string {
  if (error instanceof OperationsError) return error.message;
  return 'The monitor met an error of its own; its log has the details.';
}

const answerBytesMax = 8 * 1024 * 1024;
const MissingPermission = Compile(
  Type.Object({ error: Type.Object({ details: Type.Object({ permission: Type.String() }) }) }),
);

const RefusedFields = Compile(
  Type.Object({ error: Type.Object({ fields: Type.Array(Type.Object({ path: Type.String() })) }) }),
);

const answers = {
  discovery: Compile(Discovery),
  vms: Compile(InventoryPage),
  targets: Compile(TargetsPage),
};

/** Checks of feeds' answers, made at their first use. */
const answersOfFeeds = new WeakMap<FeedContract, Check<unknown>>();

function answerOf(contract: FeedContract): Check<unknown> {
  const check = answersOfFeeds.get(contract) ?? Compile(contract.answer);
  answersOfFeeds.set(contract, check);
  return check;
}

interface Check<T> {
  Check(value: unknown): value is T;
}

export function createOperationsClient(options: OperationsClientOptions): OperationsClient {
  const timeoutMs = options.timeoutMs ?? 10_000;

  async function call<T>(
    path: string,
    check: Check<T>,
    sent?: { body: unknown; permission: string },
  ): Promise<T> {
    if (!options.allowsInsecureHttp && !isPrivateTransport(options.baseUrl))
      throw new OperationsError('insecure');
    const signal = AbortSignal.timeout(timeoutMs);
    const { status, text } = await exchange(`${options.baseUrl}/api/admin/v1${path}`, {
      method: sent ? 'POST' : 'GET',
      headers: {
        authorization: `Bearer ${options.token}`,
        accept: 'application/json',
        ...(sent ? { 'content-type': 'application/json' } : {}),
      },
      ...(sent ? { body: JSON.stringify(sent.body) } : {}),
      // A redirect could carry the token to another host.
      redirect: 'manual',
      signal,
    });
    if (status !== 200) throw faultOf(status, text, sent?.permission);
    const answer = parseJson(text);
    if (!check.Check(answer)) throw new OperationsError('malformed');
    return answer;
  }

  const page = (afterId: number | null, limit: number) =>
    `?limit=${limit}${afterId === null ? '' : `&after_id=${afterId}`}`;
  return {
    discover: () => call('/discovery/', answers.discovery),
    listVms: (afterId, limit) => call(`/inventory/vms/${page(afterId, limit)}`, answers.vms),
    listTargets: (afterId, limit) => call(`/protect/targets/${page(afterId, limit)}`, answers.targets),
    deliver: (contract, request) =>
      call(contract.path, answerOf(contract), { body: request, permission: contract.permission }),
  };
}

async function exchange(url: string, init: RequestInit): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(url, init);
    return { status: response.status, text: await readBounded(response) };
  } catch (error) {
    if (error instanceof OperationsError) throw error;
    throw new OperationsError(transportFault(error));
  }
}

/** The fault of a call that got no whole answer. A cut answer is told apart from an unreachable host. */
function transportFault(error: unknown): OperationsFault {
  const { name, cause, message } = error as Error & { cause?: { code?: string } };
  if (name === 'TimeoutError' || name === 'AbortError') return 'timeout';
  if (message === 'terminated' || cause?.code === 'UND_ERR_SOCKET') return 'malformed';
  return 'unreachable';
}

async function readBounded(response: Response): Promise<string> {
  if (!response.body) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    size += chunk.length;
    if (size > answerBytesMax) throw new OperationsError('malformed');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function faultOf(status: number, text: string, permission?: string): OperationsError {
  if (status < 300) return new OperationsError('malformed');
  if (status < 400) return new OperationsError('redirected');
  if (status === 401) return new OperationsError('unauthorized');
  if (status === 403) return new OperationsError('permission_missing', namedPermission(text, permission));
  if (status >= 400 && status < 500 && status !== 408 && status !== 429)
    return new OperationsError('refused', null, namedFields(text));
  return new OperationsError('failed');
}

/** Fields that one refusal may name; a request has fewer. */
const refusedFieldsMax = 5_000;

/** Of what a refusal says only which fields it means, and those by their shape; its words are not kept. */
function namedFields(text: string): string[] {
  const body = tryParse(text);
  if (!RefusedFields.Check(body)) return [];
  const paths = body.error.fields.slice(0, refusedFieldsMax).map(({ path }) => path);
  return [...new Set(paths)].filter((path) => /^[a-z_]{1,40}(\.(\d{1,5}|[a-z_]{1,40})){0,8}$/.test(path));
}

/** The permission's name is taken over only when it is one that we know. */
function namedPermission(text: string, ofCall?: string): string | null {
  const body = tryParse(text);
  if (!MissingPermission.Check(body)) return null;
  const { permission } = body.error.details;
  return permission === ofCall || projectPermissions.includes(permission) ? permission : null;
}

function parseJson(text: string): unknown {
  const value = tryParse(text);
  if (value === undefined) throw new OperationsError('malformed');
  return value;
}

function tryParse(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch {
    return undefined;
  }
}
