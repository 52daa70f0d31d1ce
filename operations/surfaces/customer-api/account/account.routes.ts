import { schemas } from '#contracts/customer-api/index.ts';
import type { AccountBandwidth, Bandwidth, BandwidthRow } from '#operations/bandwidth/index.ts';
import { formatQuanta, judgeDeployment } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { bodyReader, cursorsOf, idOf, pageOf, pageOfFound, queryReader } from '../request-parts.ts';
import { findServer } from '../servers/servers.routes.ts';
import { showTenant } from '../views.ts';
import { showUsage } from './usage.routes.ts';

const readQuery = queryReader(schemas.BandwidthQuery);
const readUpdate = bodyReader(schemas.UpdateAccountRequest);

/** The account payload, and one server's bandwidth. */
export function accountHandlers(deps: Features) {
  return {
    readAccount: (call) => showAccount(deps, call),

    async updateAccount(call, request) {
      const { when_used_up } = readUpdate(call, request);
      const { id: tenantId, createdAt } = call.tenant;
      const account = { tenantId, openedAt: new Date(createdAt) };
      await deps.bandwidth.chooseWhenUsedUp(call.actor, account, when_used_up);
      return showAccount(deps, call);
    },

    async readServerBandwidth(call, request) {
      const id = idOf(request);
      // A missing resource is a 404 before the body is validated.
      await findServer(deps.servers, call, id);
      const { from, to, granularity = 'month' } = readQuery(request);
      const wanted = { from, to, granularity };
      const history = await deps.bandwidth.readHistory(call.actor, call.tenant.id, id, wanted);
      if (history === null) throw notFound();
      return {
        server_id: id,
        granularity,
        source: deps.bandwidth.source,
        current: showBandwidthRow(history.current),
        history: history.rows.map(showBandwidthRow),
        attribution_only: true,
      } satisfies schemas.ServerBandwidth;
    },
  } satisfies Handlers;
}

async function showAccount(deps: Features, call: Call): Promise<schemas.Account> {
  const { actor, tenant } = call;
  // The number that this call leaves with is the count that it shows.
  await call.counted;
  const [access, balance, bandwidth, usage, networks, keys, deploys, servers] = await Promise.all([
    deps.billing.accessOf([tenant.id]),
    deps.billing.balanceOf(actor, tenant.id),
    deps.bandwidth.readAccount(actor, { tenantId: tenant.id, openedAt: new Date(tenant.createdAt) }),
    deps.metering.usageOf(actor, { tenantId: tenant.id, period: null }),
    deps.networks.countOfTenants([tenant.id]),
    deps.apiKeys.countActive(actor.personId),
    deps.ordering.deploysOf(actor, tenant.id),
    deps.servers.countOfTenants([tenant.id]),
  ]);
  const facts = access.get(tenant.id);
  if (facts === undefined || usage === null) throw notFound();
  const refusal = judgeDeployment(facts);
  return {
    id: tenant.id,
    name: tenant.name,
    status: tenant.status.toLowerCase() as schemas.Account['status'],
    currency: tenant.currency,
    credit_balance: formatQuanta(balance),
    hourly_billing: { eligible: refusal === null, reason: refusal?.reason ?? null },
    limits: {
      servers: { max: null, used: servers.get(tenant.id) ?? 0 },
      networks: { max: deps.networks.networksMax, used: networks.get(tenant.id) ?? 0 },
      keys: keys,
      deploys_per_hour: { max: deploys.limit, used: deploys.used },
    },
    api_usage: showUsage(usage, tenant.currency),
    ...showPool(bandwidth, deps.bandwidth),
    as_of: usage.asOf.toISOString(),
  };
}

/** Decimal, as providers sell it. */
const terabyteBytes = 1_000_000_000_000;

/** The account and its bandwidth as the contract shows them. */
function showBandwidthRow(row: BandwidthRow): schemas.BandwidthRow {
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
function showPool(
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
        when_used_up: overage.whenUsedUp,
        limit_mbit: overage.limitMbit || null,
        limited_since: overage.limitedAt?.toISOString() ?? null,
      },
      servers: servers.map(showBandwidthRow),
    },
  };
}

/** To the megabyte, downwards: nothing is promised that is not there. */
function terabytes(bytes: number): number {
  return Math.floor(bytes / 1_000_000) / 1_000_000;
}

/** The workspaces that the key may act on; locked ones are listed too, with the reason that a call would be given. */
export function tenantHandlers(deps: Features) {
  return {
    async listMembers(call, request, reply) {
      const members = await deps.accounts.membersOf(call.principal.organizationId);
      const { page, pagination } = pageOf(request, reply, members, (member) => member.personId);
      return {
        members: page.map(
          (member): schemas.Member => ({
            id: member.personId,
            name: member.personName,
            email: member.personEmail,
            role: member.role,
            active: member.isActive,
          }),
        ),
        pagination,
      };
    },

    async listTenants(call, request, reply) {
      const { tenants } = call.principal;
      const { page, pagination } = pageOf(request, reply, tenants, (tenant) => tenant.id);
      const ids = page.map((tenant) => tenant.id);
      const [access, servers, networks] = await Promise.all([
        deps.billing.accessOf(ids),
        deps.servers.countOfTenants(ids),
        deps.networks.countOfTenants(ids),
      ]);
      return {
        tenants: page.map((tenant) =>
          showTenant(
            tenant,
            access.get(tenant.id),
            { servers: servers.get(tenant.id) ?? 0, networks: networks.get(tenant.id) ?? 0 },
            tenant === tenants[0],
          ),
        ),
        pagination,
      };
    },
  } satisfies Handlers;
}

const readLedgerQuery = queryReader(schemas.ListLedgerQuery);
const cursors = cursorsOf('ledger');

/** Every movement of the credit. */
export function ledgerHandlers({ billing }: Features) {
  return {
    async listLedger(call, request, reply) {
      const { limit = 50, cursor, ...filter } = readLedgerQuery(request);
      const { actor, tenant } = call;
      const before = cursor === undefined ? {} : { beforeId: cursors.read(cursor) };
      const [found, total] = await Promise.all([
        billing.listEntries(actor, tenant.id, { ...filter, ...before, limit: limit + 1 }),
        billing.countEntries(actor, tenant.id, filter),
      ]);
      const { page, pagination } = pageOfFound(request, reply, found, {
        limit,
        total,
        cursorOf: ({ id }) => cursors.write(id),
      });
      return {
        entries: page.map(
          (entry): schemas.LedgerEntry => ({
            id: entry.id,
            tenant_id: tenant.id,
            amount: formatQuanta(entry.amountQuanta),
            currency: tenant.currency,
            source: entry.metadata.source,
            description: entry.description,
            created_at: entry.createdAt.toISOString(),
          }),
        ),
        pagination,
      };
    },
  } satisfies Handlers;
}
