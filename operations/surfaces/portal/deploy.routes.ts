/** `/client/servers/new`: deploys a server by the same operation that the API uses. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { FieldFault, Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { type DeployChoice, deployedPage, deployPage } from './deploy.page.ts';
import type { Visitor } from './guard.ts';

export interface DeployDeps {
  accounts: Accounts;
  catalog: Catalog;
  servers: Servers;
}

const DeployForm = Type.Object({
  tenant: Type.Optional(Type.String()),
  plan: Type.String(),
  image: Type.String(),
  location: Type.String(),
  name: Type.Optional(Type.String()),
});

const statuses: Record<string, number> = {
  'servers.invalid': 422,
  'orders.not_eligible': 402,
  'orders.payment_failed': 402,
  'orders.deploy_rate': 429,
};

export function registerDeploy(app: App, deps: DeployDeps): void {
  app.get('/servers/new', async (request, reply) => show(deps, request.visitor!, reply, 200, {}));

  app.post('/servers/new', { schema: { body: DeployForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { plan, image, location } = request.body;
    const name = request.body.name?.trim() ?? '';
    const tenantId = request.body.tenant ? Number(request.body.tenant) : visitor.actor.tenantIds[0];
    const choice = { plan, image, location, name, tenant: request.body.tenant };
    if (tenantId === undefined || !visitor.actor.tenantIds.includes(tenantId)) {
      return show(deps, visitor, reply, 422, { choice, error: 'Choose one of your workspaces.' });
    }
    try {
      const order = { tenantId, plan, image, location, ...(name === '' ? {} : { name }) };
      const made = await deps.servers.createServer(visitor.actor, order);
      const server = await deps.servers.findServer(visitor.actor, tenantId, made.serverId);
      // The password is in this answer alone, so there is no redirect.
      return sendPage(reply, deployedPage({ visitor, server: server!, rootPassword: made.rootPassword }));
    } catch (error) {
      if (!(error instanceof CodedError) || !/^(servers|orders)\./.test(error.code)) throw error;
      const faults = (error.details.fields ?? []) as FieldFault[];
      const status = statuses[error.code] ?? 409;
      return show(deps, visitor, reply, status, { choice, error: error.message, faults });
    }
  });
}

async function show(
  deps: DeployDeps,
  visitor: Visitor,
  reply: FastifyReply,
  status: number,
  state: { choice?: DeployChoice; error?: string; faults?: readonly FieldFault[] },
): Promise<FastifyReply> {
  const [plans, images, locations, tenants] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.catalog.listLocations(),
    deps.accounts.findTenants(visitor.actor.tenantIds),
  ]);
  return sendPage(reply, deployPage({ visitor, plans, images, locations, tenants, ...state }), status);
}
