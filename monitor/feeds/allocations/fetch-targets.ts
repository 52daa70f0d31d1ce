import { canonicalAddress, isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import type { AllocationTarget } from '#contracts/admin-api/schemas.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import type { Round } from '../round.ts';

const pageSize = 1_000;
const targetsMax = 500_000;

/**
 * Pages through all allocation targets, renewing the lease between pages. A page may be empty while its cursor still
 * moves (NET-2.3). Only globally routable unicast is marked as supported.
 */
export async function fetchTargets(
  { client, renew }: Pick<Round, 'client' | 'renew'>,
  documentationIsGlobal: boolean,
): Promise<(AllocationTarget & { is_supported: boolean })[]> {
  const found = new Map<number, AllocationTarget & { is_supported: boolean }>();
  let afterId: number | null = null;
  for (;;) {
    const page = await client.listTargets(afterId, pageSize);
    for (const target of page.targets) {
      const address = canonicalAddress(target.address);
      if (address === null || Number.isNaN(Date.parse(target.assigned_at)))
        throw new OperationsError('malformed');
      const is_supported = isGlobalUnicast(parseAddress(address)!, documentationIsGlobal);
      found.set(target.id, { ...target, address, is_supported });
    }
    if (page.next_after_id === null) return [...found.values()];
    // A cursor that stands still would never end.
    if (page.next_after_id <= (afterId ?? 0) || found.size > targetsMax)
      throw new OperationsError('malformed');
    await renew();
    afterId = page.next_after_id;
  }
}
