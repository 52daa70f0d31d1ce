/** `/client/developer/`: the API keys of the signed-in person and of the organizations they own. */

import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import { expiryOf } from '#service-kit/credentials/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { type DeveloperPageOptions, developerPage } from './developer.page.ts';

interface DeveloperDeps {
  accounts: Accounts;
  apiKeys: ApiKeys;
  metering: Metering;
  clock: Clock;
}

const Id = Type.String({ pattern: '^[1-9][0-9]{0,14}$' });
const KeyForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  scope: Type.Union([Type.Literal('read'), Type.Literal('full')]),
  organization: Type.Optional(Type.String()),
  tenants: Type.Optional(Type.Union([Id, Type.Array(Id)])),
  days: Type.Optional(Type.String()),
});
const Ids = Type.Optional(Type.Union([Id, Type.Array(Id)]));
const NarrowForm = Type.Object({ key_id: Type.String({ maxLength: 64 }), tenants: Ids });
const RevokeForm = Type.Object({ key_id: Type.String({ maxLength: 64 }) });

export function registerDeveloper(app: App, deps: DeveloperDeps): void {
  app.get('/developer/', async (request, reply) => show(deps, request.visitor!, reply, 200, {}));

  // The token is in the answer to this very request: a redirect would have to keep it somewhere (API-2.1.6).
  app.post('/developer/', { schema: { body: KeyForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { name, scope } = request.body;
    const given = { ...request.body, tenants: [request.body.tenants ?? []].flat() };
    const refuse = (status: number, fault: { error: string } | { daysError: string }) =>
      show(deps, visitor, reply, status, { ...fault, given });
    const owned = visitor.actor.ownedOrganizationIds;
    const organizationId = request.body.organization ? Number(request.body.organization) : owned[0];
    if (organizationId === undefined || !owned.includes(organizationId)) {
      throw new HttpError(403, {
        code: 'forbidden',
        message: 'Only the owner of the organization may create keys. Ask the owner for one.',
      });
    }
    const expiresAt = expiryOf(request.body.days, deps.clock.nowMs());
    if (expiresAt === undefined)
      return refuse(422, { daysError: 'Give a whole number of days, or nothing.' });
    const tenants = given.tenants.map(Number);
    try {
      const { token } = await deps.apiKeys.issueKey(visitor.actor, {
        organizationId,
        personId: visitor.actor.personId,
        name,
        scope,
        tenantIds: tenants.length === 0 ? null : tenants,
        expiresAt,
      });
      return show(deps, visitor, reply, 200, { token });
    } catch (error) {
      if (error instanceof CodedError && error.code.startsWith('api_keys.'))
        return refuse(422, { error: error.message });
      throw error;
    }
  });

  // Like a created one, the new token is in this answer alone.
  app.post('/developer/rotate', { schema: { body: RevokeForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    try {
      const { token } = await deps.apiKeys.rotateKey(visitor.actor, request.body.key_id);
      return show(deps, visitor, reply, 200, { token });
    } catch (error) {
      if (hasCode(error, 'api_keys.not_found')) throw noSuchPage();
      if (hasCode(error, 'api_keys.limit'))
        return show(deps, visitor, reply, 422, { error: (error as Error).message });
      throw error;
    }
  });

  app.post('/developer/narrow', { schema: { body: NarrowForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const tenantIds = [request.body.tenants ?? []].flat().map(Number);
    if (tenantIds.length === 0)
      return show(deps, visitor, reply, 422, {
        error: 'Select at least one workspace, or revoke the key.',
      });
    if (!(await deps.apiKeys.narrowKey(visitor.actor, request.body.key_id, tenantIds))) throw noSuchPage();
    return reply.redirect('/client/developer/', 303);
  });

  app.post('/developer/revoke', { schema: { body: RevokeForm } }, async (request, reply) => {
    const isRevoked = await deps.apiKeys.revokeKey(request.visitor!.actor, request.body.key_id);
    if (!isRevoked) throw noSuchPage();
    return reply.redirect('/client/developer/', 303);
  });
}

async function show(
  deps: DeveloperDeps,
  visitor: Visitor,
  reply: FastifyReply,
  status: number,
  state: Pick<DeveloperPageOptions, 'token' | 'error' | 'daysError' | 'given'>,
): Promise<FastifyReply> {
  const { actor } = visitor;
  const [keys, memberships, tenants] = await Promise.all([
    deps.apiKeys.listKeys(actor),
    deps.accounts.membershipsOf(actor.personId),
    deps.accounts.findTenants(actor.tenantIds),
  ]);
  const counts = await deps.metering.countOfKeys(keys.map((key) => key.keyId));
  const organizations = memberships.filter((each) => each.role === 'owner');
  const nowMs = deps.clock.nowMs();
  return sendPage(
    reply,
    developerPage({ visitor, keys, counts, organizations, tenants, nowMs, ...state }),
    status,
  );
}
