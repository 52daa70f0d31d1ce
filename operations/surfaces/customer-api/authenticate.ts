/**
 * The steps that every call goes through before its endpoint runs, in the order of API-8.2: authenticate, key budget,
 * account gate, scope, count. A refusal at one step reveals nothing about the later ones.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ApiKeys, actorOf, type Principal } from '#operations/api-keys/index.ts';
import { type Billing, describeRefusal, judgeAccess } from '#operations/billing/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { AccessFacts } from '#operations/views/tenant-store.ts';
import { hasAuthorization, readBearer } from '#service-kit/credentials/index.ts';
import { HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import type { Allowance, SlidingLog } from '#service-kit/limits/index.ts';
import { createLookup } from '#service-kit/postgres/index.ts';
import { notFound, selectTenant, type Version } from './call.ts';
import { addRateLimit, quotaExceeded } from './rate-headers.ts';
import { BodyFault } from './read-body.ts';
import { refusalError } from './translate-error.ts';

export type Gate = ReturnType<typeof createGate>;

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

export function createGate(deps: {
  apiKeys: ApiKeys;
  billing: Billing;
  metering: Metering;
  /** Requests of a key within a minute. */
  keyBudget: SlidingLog;
  requestsPerMinute: number;
  /** Failed authentications of a source address. */
  authFailures: SlidingLog;
}) {
  const lookupAccess = createLookup<number, AccessFacts>((tenantIds) => deps.billing.accessOf(tenantIds));

  /** Steps one and three for a call that has waited. */
  async function authenticateAgain(request: FastifyRequest): Promise<void> {
    const token = readBearer(request.raw.rawHeaders);
    const principal = token === null ? null : await deps.apiKeys.verifyKey(token);
    const tenant = principal?.tenants.find(({ id }) => id === request.call?.tenant.id);
    if (tenant === undefined) throw unauthorized();
    const facts = await lookupAccess(tenant.id);
    if (facts === null) throw notFound();
    const refusal = judgeAccess(facts);
    if (refusal !== null) throw refusalError(refusal, describeRefusal(refusal));
  }

  async function authenticate(request: FastifyRequest): Promise<Principal> {
    const token = readBearer(request.raw.rawHeaders);
    const principal = token === null ? null : await deps.apiKeys.verifyKey(token);
    if (principal !== null) return principal;
    // A call without a credential is refused, but it is not an attempt to guess one.
    if (!hasAuthorization(request.raw.rawHeaders)) throw unauthorized();
    const attempt = await deps.authFailures.take(sourceBucket(request.ip));
    throw attempt.isAllowed ? unauthorized() : tooManyFailures(attempt);
  }

  return {
    /** Step one and two; to be run before the body is read. */
    async admit(request: FastifyRequest, reply: FastifyReply, version: Version) {
      const principal = await authenticate(request);
      const allowance = await deps.keyBudget.take(principal.keyId);
      addRateLimit(reply, {
        policy: 'key',
        limit: deps.requestsPerMinute,
        windowSeconds: 60,
        remaining: allowance.remaining,
        resetSeconds: allowance.resetSeconds,
      });
      if (!allowance.isAllowed) throw overBudget(deps.requestsPerMinute, allowance);
      request.call = {
        version,
        principal,
        actor: { ...actorOf(principal), origin: originOf(request) },
        tenant: principal.tenants[0]!,
        budgetRemaining: allowance.remaining,
        counted: null,
        changeablePart: '',
        authenticateAgain: () => authenticateAgain(request),
      };
    },

    /** Steps three to five, and then what is wrong with selection or body. */
    async pass(request: FastifyRequest, reply: FastifyReply, selectsTenant: boolean) {
      const call = request.call!;
      const body = request.body;
      let fault = body instanceof BodyFault ? body.error : null;
      if (call.version === 'v2' && selectsTenant && fault === null) {
        const selection = selectTenant(request, call.principal.tenants);
        call.tenant = selection.tenant;
        fault = selection.fault;
      }
      const isRead = safeMethods.has(request.method);
      const { access } = call.principal;
      // Nothing comes between the key of a read and this step; a body may have taken a minute to arrive.
      const facts =
        isRead && access.tenantId === call.tenant.id ? access : await lookupAccess(call.tenant.id);
      if (facts === null) throw notFound();
      const refusal = judgeAccess(facts);
      if (refusal !== null) throw refusalError(refusal, describeRefusal(refusal));
      if (!isRead && call.principal.scope !== 'full') throw readOnlyKey();
      // Started here and awaited before the answer leaves, so that counting and the endpoint's own work overlap.
      call.counted = deps.metering.countRequest(call.tenant.id, call.principal.keyId);
      if (call.version === 'v2' && fault === null) reply.header('x-tenant-id', String(call.tenant.id));
      if (fault !== null) throw fault;
    },
  };
}

/** One answer for every cause (API-5.2); no attribute of the challenge tells them apart either. */
function unauthorized(): HttpError {
  return new HttpError(
    401,
    { code: 'unauthorized', message: 'Invalid or missing API key.' },
    { 'www-authenticate': 'Bearer realm="api"' },
  );
}

function tooManyFailures(attempt: Allowance): HttpError {
  return new HttpError(
    429,
    {
      code: 'rate_limited',
      reason: 'auth_rate',
      message: 'Too many failed authentications from this address. Check your key and try again later.',
      retryable: true,
    },
    { 'retry-after': String(attempt.resetSeconds) },
  );
}

function overBudget(limit: number, allowance: Allowance): HttpError {
  return new HttpError(
    429,
    {
      code: 'rate_limited',
      reason: 'key_rate',
      message: `This key has made ${limit} requests within a minute. Try again in ${allowance.resetSeconds} seconds.`,
      retryable: true,
      problem: quotaExceeded('key'),
    },
    { 'retry-after': String(allowance.resetSeconds) },
  );
}

function readOnlyKey(): HttpError {
  const message = 'This key may only read. Use a full key for changes.';
  return new HttpError(403, { code: 'forbidden', reason: 'read_only_key', message });
}
