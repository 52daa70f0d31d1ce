/** The account and its bandwidth as the contract shows them. */
import type { schemas } from '#contracts/customer-api/index.ts';
import type { AccountBandwidth, Bandwidth, BandwidthRow } from '#operations/bandwidth/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';

/** Decimal, as providers sell it. */
export const terabyteBytes = 1_000_000_000_000;

export function showBandwidthRow(row: BandwidthRow): schemas.BandwidthRow {
  return {
    server_id: row.serverId,
    server_name: row.serverName,
    period: row.period.name,
    period_start: new Date(row.period.startMs).toISOString(),
    period_end: new Date(row.period.endMs).toISOString(),
    inbound_bytes: row.inboundBytes,
    outbound_bytes: row.outboundBytes,
    total_bytes: row.inboundBytes + row.outboundBytes,
    provider_scan_inbound_bytes: row.ownScanInboundBytes,
    provider_scan_outbound_bytes: row.ownScanOutboundBytes,
    attack_inbound_bytes: row.attackInboundBytes,
    attack_outbound_bytes: row.attackOutboundBytes,
    pool_bytes: row.poolBytes,
    pool_share: Math.round(row.poolShare * 1_000_000) / 1_000_000,
    sampled: row.lastSampledAt !== null,
    last_sampled_at: row.lastSampledAt?.toISOString() ?? null,
    server_deleted: row.isDeleted,
  };
}

type PoolFields =
  | 'extra_server_allowance_tb'
  | 'instance_earned_tb'
  | 'extra_per_additional_server_gb'
  | 'instance_potential_tb'
  | 'instance_remaining_tb'
  | 'potential_allowance_tb'
  | 'base_allowance_tb'
  | 'tenure_bonus_tb'
  | 'free_allowance_tb'
  | 'allowance_tb'
  | 'reset_at'
  | 'bandwidth';

/** The fields of API-2.5. */
export function showPool(
  { month, pool, overage, servers }: AccountBandwidth,
  bandwidth: Bandwidth,
): Pick<schemas.Account, PoolFields> {
  return {
    extra_server_allowance_tb: terabytes(pool.earnedBytes),
    instance_earned_tb: terabytes(pool.earnedBytes),
    extra_per_additional_server_gb: pool.perServerBytes / 1_000_000_000,
    instance_potential_tb: terabytes(pool.potentialEarnedBytes),
    instance_remaining_tb: terabytes(pool.earnedRemainingBytes),
    potential_allowance_tb: terabytes(pool.potentialBytes),
    base_allowance_tb: terabytes(pool.baseBytes),
    tenure_bonus_tb: terabytes(pool.tenureBytes),
    free_allowance_tb: terabytes(pool.freeBytes),
    allowance_tb: terabytes(pool.allowanceBytes),
    reset_at: new Date(month.endMs).toISOString(),
    bandwidth: {
      period: month.name,
      source: bandwidth.source,
      pool_counts: bandwidth.poolCounts,
      tb_bytes: terabyteBytes,
      used_bytes: pool.usedBytes,
      remaining_bytes: pool.remainingBytes,
      projected_bytes: pool.projection?.bytes ?? null,
      projection_hours: pool.projection?.hours ?? null,
      overage: {
        per_tb: overage.tbQuanta === 0 ? null : formatQuanta(overage.tbQuanta),
        bytes: overage.bytes,
        amount: formatQuanta(overage.quanta),
        projected_amount: overage.projectedQuanta === null ? null : formatQuanta(overage.projectedQuanta),
        charged_at: overage.tbQuanta === 0 ? null : new Date(overage.chargedAtMs).toISOString(),
      },
      servers: servers.map(showBandwidthRow),
    },
  };
}

/** To the megabyte, downwards: nothing is promised that is not there. */
function terabytes(bytes: number): number {
  return Math.floor(bytes / 1_000_000) / 1_000_000;
}
