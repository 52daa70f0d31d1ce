/** Flows of the range: customer to server to application, as far as applications are kept. */
import type { Exploration } from '#operations/protect/index.ts';
import {
  type FlowEnd,
  type FlowPicture,
  type Row,
  sizeOf,
  unclassifiedPairs,
  type Value,
} from '#service-kit/explorer/index.ts';
import type { ExplorerPlace } from './place.ts';

/** Flows that are read, largest first. */
const flowsMax = 2_000;

const endOf = ({ label, value }: Value): FlowEnd => ({ key: value ?? `(${label})`, label, value });

/** Each server has its whole traffic, of which applications hold a part. */
export async function readFlows(
  explored: Exploration,
  { flowColumns: columns }: ExplorerPlace,
): Promise<FlowPicture> {
  const limit = Math.max(1, explored.servers.length);
  const hasCustomers = columns[0] === 'customer';
  const [flows, servers, customers] = await Promise.all([
    explored.flows(flowsMax),
    explored.rank('server', { limit }),
    hasCustomers ? explored.rank('customer', { limit }) : null,
  ]);
  const last = columns.length - 2;
  const partOf = ({ key, amount }: Row) => ({ from: endOf(key[0]!), size: sizeOf(amount, 'bytes')! });
  const totals = servers.rows.map(partOf);
  const known = flows.map(({ server, application, bytes }) => ({
    ...{ column: last, from: endOf(server), to: endOf(application), size: bytes },
  }));
  const customerOf = new Map(customers?.rows.map((row) => [row.details!.customerId, endOf(row.key[0]!)]));
  const first = servers.rows.flatMap((row) => {
    const customer = customerOf.get(row.details!.customerId);
    const { from, size } = partOf(row);
    return customer ? [{ column: 0, from: customer, to: from, size }] : [];
  });
  return {
    ...{ columns, colourColumn: columns.length - 1, title: 'Which application on which server' },
    source:
      'unclassified: no application is known, as of most packets of an attack, port scans, or before 24 hours',
    pairs: [...first, ...known, ...unclassifiedPairs(last, totals, known)],
    measure: 'bytes',
  };
}
