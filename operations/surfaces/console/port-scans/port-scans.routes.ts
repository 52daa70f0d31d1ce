/** `/console/port-scans/`: port scans of all customers' servers. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { ProtectScans, ScanListQuery } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, withQuery } from '#service-kit/pages/index.ts';
import { isId, knownQuery, numberOf } from '../server-list.ts';
import { type PortScansQuery, portScansPage, scanStates } from './port-scans.page.ts';

export interface PortScansDeps {
  protectScans: Pick<ProtectScans, 'listAll' | 'countPending'>;
  clusters: Pick<Clusters, 'listNodes'>;
  clock: Clock;
}

const pageSize = 100;
const text = Type.Optional(Type.String({ maxLength: 100 }));
const Query = Type.Object({
  state: text,
  node: text,
  customer: text,
  tenant: text,
  server: text,
  after: text,
});

export function registerPortScans(app: App, deps: PortScansDeps): void {
  app.get('/port-scans/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const query = knownQuery<PortScansQuery>(request.query, known);
    const [found, pending, nodes] = await Promise.all([
      deps.protectScans.listAll(staff.actor, { ...filterOf(query), limit: pageSize + 1 }),
      deps.protectScans.countPending(staff.actor),
      deps.clusters.listNodes(staff.actor, null),
    ]);
    const scans = found.slice(0, pageSize);
    const last = scans.at(-1);
    const url = withQuery('/console/port-scans/', { ...query, after: undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: `${last.place}_${last.id}` }) : undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, portScansPage({ staff, scans, pending, nodes, query, url, nextHref, nowMs }));
  });
}

const cursorPattern =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** The place in a URL; undefined when it is none. */
function readCursor(given: string | undefined): ScanListQuery['after'] {
  const [, place, id] = cursorPattern.exec(given ?? '') ?? [];
  if (place === undefined || id === undefined || Number.isNaN(Date.parse(place))) return undefined;
  return { place, id };
}

const known = {
  state: (value: string) => scanStates.some((choice) => choice.value === value),
  node: isId,
  customer: (value: string) => value.trim() !== '' && !value.includes('\0'),
  after: (value: string) => readCursor(value) !== undefined,
};

function filterOf({
  state,
  node,
  customer,
  tenant,
  server,
  after,
}: PortScansQuery): Omit<ScanListQuery, 'limit'> {
  return {
    state: scanStates.find((choice) => choice.value === state)?.value,
    nodeId: numberOf(node),
    customer: customer?.trim(),
    tenantId: numberOf(tenant),
    serverId: numberOf(server),
    after: readCursor(after),
  };
}
