import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { KeySummary } from '#operations/views/key-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { bodyReader, pageOf, readMoment, readSelection } from '../request-parts.ts';
import { showKey } from './usage.routes.ts';

const readCreate = bodyReader(schemas.CreateApiKeyRequest);

/** The key that calls, and those that may do no more than itself. */
export function keyHandlers(deps: { apiKeys: ApiKeys; requestsPerMinute: number }) {
  const { apiKeys } = deps;
  const find = async (call: Call, keyId: string, tenantId = call.tenant.id) => {
    const keys = await apiKeys.listKeysBelow(call.actor, tenantId);
    const found = keys.find((key) => key.keyId === keyId);
    if (found === undefined) throw notFound();
    return found;
  };
  const keyIdOf = (request: FastifyRequest) => (request.params as { key_id: string }).key_id;
  return {
    async readKey(call) {
      const facts = await apiKeys.factsOf(call.principal);
      if (facts === null) throw notFound();
      return showKey(call.principal, facts, {
        limit: deps.requestsPerMinute,
        remaining: call.budgetRemaining,
      });
    },

    async listApiKeys(call, request, reply) {
      const keys = await apiKeys.listKeysBelow(call.actor, call.tenant.id);
      const { page, pagination } = pageOf(request, reply, keys, (key) => key.keyId);
      return { keys: page.map(showApiKey), pagination };
    },

    async createApiKey(call, request, reply) {
      const given = readCreate(call, request);
      const { name, scope, tenant_ids: tenantIds = [call.tenant.id], expires_at: expiry } = given;
      const { keyId, token } = await apiKeys.issueKey(call.actor, {
        organizationId: call.principal.organizationId,
        personId: call.principal.personId,
        name,
        scope,
        tenantIds,
        expiresAt: expiry ? new Date(readMoment('expires_at', expiry)) : null,
      });
      const made = await find(call, keyId, tenantIds[0]);
      reply.code(201).header('location', `/api/${call.version}/keys/${keyId}`);
      return { ...showApiKey(made), token };
    },

    readApiKey: async (call, request) => showApiKey(await find(call, keyIdOf(request))),

    async revokeApiKey(call, request) {
      const { keyId } = await find(call, keyIdOf(request));
      readSelection(call, request);
      await apiKeys.revokeKey(call.actor, keyId, call.tenant.id);
      return showApiKey(await find(call, keyId));
    },
  } satisfies Handlers;
}

function showApiKey(key: KeySummary): schemas.ApiKey {
  return {
    key_id: key.keyId,
    name: key.name,
    prefix: `svc_${key.keyId.slice(0, 4)}`,
    scope: key.scope,
    tenant_ids: key.tenantIds,
    organization_id: key.organizationId,
    person_id: key.personId,
    active: key.isActive,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}
