/** `/client/servers/new`: deploys a server by the same operation that the API uses. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { FieldFault, ServerForecast, Servers } from '#operations/servers/index.ts';
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
  ssh_key: Type.Optional(Type.String({ maxLength: 16_384 })),
  form_id: Type.Optional(Type.String({ pattern: '^[0-9a-f-]{36}$' })),
});

const statuses: Record<string, number> = {
  'servers.invalid': 422,
  'orders.repeated': 409,
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
    const sshKeys = (request.body.ssh_key ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    const { tenant, ssh_key } = request.body;
    const choice = { plan, image, location, name, tenant, ssh_key };
    if (tenantId === undefined || !visitor.actor.tenantIds.includes(tenantId)) {
      return show(deps, visitor, reply, 422, { choice, error: 'Choose one of your workspaces.' });
    }
    try {
      const order = { tenantId, plan, image, location, sshKeys, ...(name === '' ? {} : { name }) };
      const checkout = { formId: request.body.form_id ?? null };
      const made = await deps.servers.createServer(visitor.actor, order, { checkout });
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
  const forecast = await forecastOf(deps, visitor, { plans, images, locations });
  return sendPage(
    reply,
    deployPage({ visitor, plans, images, locations, tenants, forecast, formId: randomUUID(), ...state }),
    status,
  );
}

/** What ordering the first plan would come to now, by the rules of the order itself; null when there is nothing. */
async function forecastOf(
  deps: DeployDeps,
  visitor: Visitor,
  offered: Record<'plans' | 'images' | 'locations', readonly { slug: string }[]>,
): Promise<ServerForecast | null> {
  const tenantId = visitor.actor.tenantIds[0];
  const [plan, image, location] = [offered.plans[0], offered.images[0], offered.locations[0]];
  if (tenantId === undefined || !plan || !image || !location) return null;
  const order = { tenantId, plan: plan.slug, image: image.slug, location: location.slug };
  return deps.servers.forecastServer(visitor.actor, order);
}
