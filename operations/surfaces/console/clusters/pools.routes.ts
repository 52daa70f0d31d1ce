/** Ranges that a cluster gives addresses out of. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { field, form, type Html, link, pageHeader, sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

const Id = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
const text = Type.Optional(Type.String({ maxLength: 100 }));
const PoolBody = Type.Object({ prefix: text, gateway: text, first: text, last: text });

interface PoolPageOptions {
  staff: Staff;
  cluster: Cluster;
  given?: { prefix?: string; gateway?: string; first?: string; last?: string };
  fault?: { field: string; message: string };
}

export function registerPools(app: App, deps: Features): void {
  app.get('/clusters/:id/pools/new', { schema: { params: Id } }, async (request, reply) => {
    const staff = request.staff!;
    const cluster = await findCluster(deps, request.params.id);
    if (!staff.canChange) throw noSuchPage();
    return sendPage(reply, poolPage({ staff, cluster }));
  });

  app.post('/clusters/:id/pools', { schema: { params: Id, body: PoolBody } }, async (request, reply) => {
    const staff = request.staff!;
    const cluster = await findCluster(deps, request.params.id);
    const { prefix = '', gateway = '', first = '', last = '' } = request.body;
    const pool = { clusterId: cluster.id, prefix, gateway, firstAddress: first, lastAddress: last };
    return unlessRefused(
      reply,
      async () => {
        await deps.addresses.addPool(staff.actor, pool);
      },
      (fault) => sendPage(reply, poolPage({ staff, cluster, given: request.body, fault }), 422),
    );
  });

  app.post('/clusters/pools/:id/remove', { schema: { params: Id } }, (request, reply) =>
    unlessRefused(
      reply,
      () => deps.addresses.removePool(request.staff!.actor, request.params.id),
      () => reply.redirect('/console/clusters/?done=kept', 303),
    ),
  );
}

/** The form's names of the fields that operations name in their refusals. */
const fieldNames: Readonly<Record<string, string>> = { firstAddress: 'first', lastAddress: 'last' };

async function unlessRefused(
  reply: FastifyReply,
  work: () => Promise<void>,
  refuse: (fault: { field: string; message: string }) => FastifyReply,
): Promise<FastifyReply> {
  try {
    await work();
    return reply.redirect('/console/clusters/?done=saved', 303);
  } catch (error) {
    if (!(error instanceof CodedError) || !error.code.startsWith('addresses.')) throw error;
    if (error.code === 'addresses.not_found') throw noSuchPage();
    const named = String(error.details.field);
    return refuse({ field: fieldNames[named] ?? named, message: error.message });
  }
}

async function findCluster(deps: Features, id: number): Promise<Cluster> {
  const cluster = (await deps.clusters.listClusters()).find((one) => one.id === id);
  if (cluster === undefined) throw noSuchPage();
  return cluster;
}

/** `/console/clusters/{id}/pools/new`. */
function poolPage({ staff, cluster, given, fault }: PoolPageOptions): Html {
  const title = `Addresses for ${cluster.name}`;
  const line = (
    name: 'prefix' | 'gateway' | 'first' | 'last',
    label: string,
    placeholder: string,
    hint?: string,
  ) =>
    field({
      name,
      label,
      placeholder,
      isCode: true,
      required: true,
      maxLength: 60,
      value: given?.[name],
      error: fault?.field === name ? fault.message : undefined,
      ...(hint ? { hint } : {}),
    });
  return consoleFrame(
    {
      staff,
      title,
      current: 'clusters',
      breadcrumb: [{ label: 'Clusters', href: '/console/clusters/' }, { label: title }],
    },
    [
      pageHeader({
        title,
        state: {
          tone: 'info',
          text: 'Each new server gets one IPv4 and one IPv6 address, as far as its cluster has ranges.',
        },
      }),
      form(
        {
          action: `/console/clusters/${cluster.id}/pools`,
          csrfToken: staff.csrfToken,
          submit: 'Add addresses',
          cancel: link('/console/clusters/', 'Cancel', { kind: 'button' }),
        },
        [
          line('prefix', 'Network', '203.0.113.0/24', 'IPv4 or IPv6, routed to the bridge of the nodes.'),
          line('gateway', 'Gateway', '203.0.113.1'),
          line('first', 'First address for servers', '203.0.113.10'),
          line('last', 'Last address for servers', '203.0.113.250'),
        ],
      ),
    ],
  );
}
