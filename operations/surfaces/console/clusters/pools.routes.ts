/** Ranges that a cluster gives addresses out of. */
import { Type } from 'typebox';
import type { Cluster } from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type FieldOptions,
  type Html,
  inputForm,
  link,
  pageHeader,
  sendPage,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { type FieldFault, faultOf } from '../field-fault.ts';
import { consoleFrame } from '../frame.ts';
import { Id, type Staff } from '../guard.ts';

const text = Type.Optional(Type.String({ maxLength: 100 }));
const PoolBody = Type.Object({ prefix: text, gateway: text, first: text, last: text });

interface PoolPageOptions {
  staff: Staff;
  cluster: Cluster;
  given?: { prefix?: string; gateway?: string; first?: string; last?: string };
  fault?: FieldFault;
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
    const fault = await poolFault(() => deps.addresses.addPool(staff.actor, pool));
    if (fault === null) return reply.redirect('/console/clusters/?done=saved', 303);
    return sendPage(reply, poolPage({ staff, cluster, given: request.body, fault }), 422);
  });

  app.post('/clusters/pools/:id/remove', { schema: { params: Id } }, async (request, reply) => {
    const { id } = request.params;
    const fault = await poolFault(() => deps.addresses.removePool(request.staff!.actor, id));
    return reply.redirect(`/console/clusters/?done=${fault === null ? 'saved' : 'kept'}`, 303);
  });
}

const poolFault = (change: () => Promise<unknown>) => faultOf('addresses', fieldNames, change);
/** The form's names of the fields that operations name in their refusals. */
const fieldNames = { firstAddress: 'first', lastAddress: 'last' };

async function findCluster(deps: Features, id: number): Promise<Cluster> {
  const cluster = (await deps.clusters.listClusters()).find((one) => one.id === id);
  if (cluster === undefined) throw noSuchPage();
  return cluster;
}

/** `/console/clusters/{id}/pools/new`. */
function poolPage({ staff, cluster, given, fault }: PoolPageOptions): Html {
  const title = `Addresses for ${cluster.name}`;
  const line = (name: string, label: string, placeholder: string, hint?: string): FieldOptions => ({
    ...{ name, label, placeholder, isCode: true, required: true, maxLength: 60 },
    ...(hint && { hint }),
  });
  return consoleFrame({ staff, title, current: 'clusters' }, [
    pageHeader({
      title,
      state: {
        tone: 'info',
        text: 'Each new server gets one IPv4 and one IPv6 address, as far as its cluster has ranges.',
      },
    }),
    inputForm(
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
      { typed: given, fault },
    ),
  ]);
}
