/**
 * The monitor's client of the admin API: limited in time and size, without redirects, with validation of every answer.
 * Its token is sent over https or within the machine only.
 *
 * Every failure is one of a few fixed sentences (NET-4.10): the text of an error answer is neither stored nor logged,
 * because it may contain anything.
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { CodedError } from '#common/errors/index.ts';
import { describeTransportFailure, isPrivateTransport } from '#common/transport/index.ts';
import type { FeedContract } from '#contracts/admin-api/contract.ts';
import { InventoryChangesPage, inventoryChangesPath } from '#contracts/admin-api/inventory-changes.ts';
import {
  ScanRequestOutcomes,
  ScanRequestsPage,
  type ScanRequestUpdates,
  scanRequestsContract,
  scanRequestsPath,
} from '#contracts/admin-api/port-scans.ts';
import { Discovery, InventoryPage, projectPermissions, TargetsPage } from '#contracts/admin-api/schemas.ts';
import { parseStrictJson } from '#service-kit/http/index.ts';

export type OperationsClient = ReturnType<typeof createOperationsClient>;

export interface OperationsClientOptions {
  /** Without a trailing slash. */
  baseUrl: string;
  token: string;
  /** Timeout of a whole call, including connecting and reading. */
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
  | 'stale'
  | 'source_limited'
  | 'unreadable';

const sentences: Record<OperationsFault, string> = {
  insecure:
    'The base URL is not encrypted, so the token is not sent to it. Enter an https address. If only svc uses the network, set SVC_ALLOW_INSECURE_HTTP=1 for the monitor instead.',
  unreachable: 'Check the base URL and that operations runs.',
  timeout: 'Operations did not answer in time. The next run tries again.',
  redirected: 'Operations answered with a redirect, which is not followed. Enter the final base URL.',
  unauthorized:
    'Operations refused the token. Create a new token for the admin API project and enter it here.',
  permission_missing:
    'The admin API project lacks the permission for this feed. Edit the project in operations; the token stays valid.',
  refused: 'Operations refused the request as invalid.',
  failed: 'Operations reported an internal error. The next run tries again.',
  malformed: 'The answer from operations was invalid or incomplete. The next run tries again.',
  stale:
    'The inventory from operations has a time stamp more than 15 minutes old, so it was not imported. Check the clocks, and whether operations reads from a lagging replica.',
  source_limited:
    'Nothing was sent: a limit of one read was reached before any live window that can be used. Check the live store and the clocks of the sensors.',
  unreadable: 'Stored data of at least one item can not be read; the log says why. The others are delivered.',
};

/** A failed call; `message` is one of the fixed sentences and may be shown and stored. */
export class OperationsError extends CodedError {
  readonly fault: OperationsFault;
  /** The permission that operations reported as missing, if it is a known one. */
  readonly permission: string | null;
  /** Paths of the fields that a refusal named, such as `targets.0.series.3.pps`; its other text is not stored. */
  readonly refusedFields: readonly string[];

  constructor(
    fault: OperationsFault,
    permission: string | null = null,
    refusedFields: readonly string[] = [],
    /** Why operations could not be reached. */
    reason: string | null = null,
  ) {
    const said = reason === null ? '' : `Operations could not be reached: ${reason}. `;
    super(`operations.${fault}`, `${said}${sentences[fault]}`);
    this.fault = fault;
    this.permission = permission;
    this.refusedFields = refusedFields;
  }
}

/** True when every other call would fail in the same way. */
export function concernsEveryCall(fault: OperationsFault): boolean {
  return !['refused', 'failed', 'malformed', 'source_limited', 'unreadable'].includes(fault);
}

/** The sentence for any thrown value; for other errors, a sentence without details. */
export function safeFaultText(error: unknown): string {
  if (error instanceof OperationsError) return error.message;
  return 'Internal error of the monitor; its log has the details.';
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
  changes: Compile(InventoryChangesPage),
  targets: Compile(TargetsPage),
  scanRequests: Compile(ScanRequestsPage),
  scanOutcomes: Compile(ScanRequestOutcomes),
};

/** Validators of feeds' answers, compiled at first use. */
const answersOfFeeds = new WeakMap<FeedContract, Check<unknown>>();

function answerOf(contract: FeedContract): Check<unknown> {
  const check = answersOfFeeds.get(contract) ?? Compile(contract.answer);
  answersOfFeeds.set(contract, check);
  return check;
}

interface Check<T> {
  Check(value: unknown): value is T;
}

export function createOperationsClient(options: OperationsClientOptions) {
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
  const pageAfter = (after: string | null, limit: number) =>
    `?limit=${limit}${after === null ? '' : `&after=${encodeURIComponent(after)}`}`;
  return {
    /** Permissions of the token's project. */
    discover: () => call('/discovery/', answers.discovery),
    /** A page of virtual machines after this id; null as the next id ends the listing. */
    listVms: (afterId: number | null, limit: number) =>
      call(`/inventory/vms/${page(afterId, limit)}`, answers.vms),
    /** A page of changes of servers after this cursor, null for the beginning. */
    listChanges: (after: string | null, limit: number) =>
      call(`${inventoryChangesPath}${pageAfter(after, limit)}`, answers.changes),
    /** A page of allocation targets; it may be empty while the cursor still moves (NET-2.3). */
    listTargets: (afterId: number | null, limit: number) =>
      call(`/protect/targets/${page(afterId, limit)}`, answers.targets),
    /** A page of scan requests that are not final, after this cursor. */
    listScanRequests: (after: string | null, limit: number) =>
      call(`${scanRequestsPath}${pageAfter(after, limit)}`, answers.scanRequests),
    /** Says what became of scan requests. */
    updateScanRequests: (body: ScanRequestUpdates) =>
      call(scanRequestsPath, answers.scanOutcomes, { body, permission: scanRequestsContract.permission }),
    /** Posts a feed's request. The answer matches the contract's schema. */
    deliver: (contract: FeedContract, request: unknown) =>
      call(contract.path, answerOf(contract), { body: request, permission: contract.permission }),
  };
}

async function exchange(url: string, init: RequestInit): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(url, init);
    return { status: response.status, text: await readBounded(response) };
  } catch (error) {
    if (error instanceof OperationsError) throw error;
    const fault = transportFault(error);
    throw new OperationsError(
      fault,
      null,
      [],
      fault === 'unreachable' ? describeTransportFailure(error) : null,
    );
  }
}

/** The error of a call without a complete answer. A truncated answer is distinguished from an unreachable host. */
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

/** Maximum number of fields in one refusal; a request has fewer. */
const refusedFieldsMax = 5_000;

/** Only the field paths of a refusal are used, and only if they have the right form; other text is not stored. */
function namedFields(text: string): string[] {
  const body = tryParse(text);
  if (!RefusedFields.Check(body)) return [];
  const paths = body.error.fields.slice(0, refusedFieldsMax).map(({ path }) => path);
  return [...new Set(paths)].filter((path) => /^[a-z_]{1,40}(\.(\d{1,5}|[a-z_]{1,40})){0,8}$/.test(path));
}

/** The permission's name is used only if it is a known one. */
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
