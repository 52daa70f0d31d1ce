/** Faults around port scans that a proof plants, to verify that it notices them. */
import type { ScanExchange } from '#monitor/scans/index.ts';
import type { World as MonitorWorld } from '#monitor/testing/world.ts';
import type { World as OperationsWorld } from '#operations/testing/create-world.ts';

/**
 * `cancelled_revived`: a late result ends a request that was cancelled (NET-1.6). `older_scan_wins`: operations goes by the
 * order of arrival. `newest_only`: a newer scan of an address replaces the undelivered result of a request. `unconfirmed_sent`:
 * results are sent under a connection that did not confirm their request (NET-2.7.9).
 */
export const scanPlants = [
  'cancelled_revived',
  'older_scan_wins',
  'newest_only',
  'unconfirmed_sent',
] as const;
export type ScanPlant = (typeof scanPlants)[number];

const triggers: Readonly<Partial<Record<ScanPlant, string>>> = {
  cancelled_revived: `update scan_requests set state = new.state where id = new.request_id and state = 'cancelled';`,
  older_scan_wins: `update port_observations set common_scan_id = case new.profile when 'common' then new.scan_id else common_scan_id end,
      full_scan_id = case new.profile when 'full' then new.scan_id else full_scan_id end
    where allocation_id = new.allocation_id;`,
};

/** Plants a fault in operations. */
export async function plantInOperations({ database }: OperationsWorld, plant: string | null): Promise<void> {
  const body = triggers[plant as ScanPlant];
  if (!body) return;
  await database.pool.query(
    `create function planted() returns trigger language plpgsql as $$ begin ${body} return null; end $$;
     create trigger planted after insert on port_scans for each row execute function planted()`,
  );
}

/** What the feed exchanges, with a planted fault. */
export function plantInMonitor({ scans }: MonitorWorld, plant: string | null): ScanExchange {
  const newest = new Map<string, number>();
  const listDeliverable: ScanExchange['listDeliverable'] = async (clusterIds, revision) => {
    if (plant === 'unconfirmed_sent') {
      const revisions = Array.from({ length: revision }, (_, i) => i + 1);
      const lists = await Promise.all(revisions.map((one) => scans.listDeliverable(clusterIds, one)));
      return [...new Map(lists.flat().map((one) => [one.scanId, one])).values()];
    }
    const all = await scans.listDeliverable(clusterIds, revision);
    if (plant !== 'newest_only') return all;
    for (const { address, finishedAtMs } of all)
      newest.set(address, Math.max(newest.get(address) ?? 0, finishedAtMs));
    return all.filter((one) => one.request === null || one.finishedAtMs >= newest.get(one.address)!);
  };
  return { ...scans, listDeliverable };
}
