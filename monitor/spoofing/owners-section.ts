/** The plan's section `owners`: which MACs may send from which address of the node's servers. */
import type { PlanOwners } from '#contracts/sensor-api/http.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import { countOwnedAddresses, listAddressOwners } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** The contract's bounds of `owners`. */
const addressesMax = 4096;
const macsMax = 8;

export function createOwnersSection({
  db,
  reader,
}: {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
}): PlanSection {
  return listSection<PlanOwners>({
    name: 'owners',
    label: 'addresses guarded against spoofing',
    entriesMax: addressesMax,
    advice: 'Move servers to other nodes, or check the node of this sensor.',
    versions: { owners_version: 1 },
    async list({ siteId, node }) {
      const owners = node === null ? [] : await listAddressOwners(reader(), siteId, node);
      return owners.filter(({ macs }) => macs.length <= macsMax);
    },
    toFields: (owners) => ({ owners }),
    countEntries: (subjects) =>
      countOwnedAddresses(
        db(),
        subjects.map(({ sensorId }) => sensorId),
      ),
  });
}
