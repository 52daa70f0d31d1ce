/** Servers, actions and workspaces as the contract's bodies: each field is named here, nothing is spread. */
import type { schemas } from '#contracts/customer-api/index.ts';
import { formatQuanta, judgeAccess } from '#operations/billing/index.ts';
import type { ServerForecast } from '#operations/ordering/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { ReachableTenant } from '#operations/views/key-store.ts';
import type { Attachment } from '#operations/views/network-store.ts';
import type { Server, ServerAction } from '#operations/views/server-store.ts';
import type { AccessFacts } from '#operations/views/tenant-store.ts';

/** With the version of its machine, which no answer has: it is a part of the tag. */
export type ShownServer = schemas.Server & { machine_version: number };

export function showServer(server: Server, currency: string): ShownServer {
  return {
    machine_version: server.machineVersion,
    id: server.id,
    tenant_id: server.tenantId,
    order_id: server.orderId,
    name: server.name,
    hostname: server.hostname,
    status: statusOf(server),
    provisioning_state: server.provisioningState as schemas.Server['provisioning_state'],
    power_state: server.powerState,
    locked: server.currentAction !== null,
    rescue: server.isRescued,
    status_changed_at: server.statusChangedAt.toISOString(),
    plan: {
      id: server.planId,
      slug: server.planSlug,
      name: server.planName,
      vcpus: server.vcpus,
      memory_mb: server.memoryMb,
      disk_gb: server.diskGb,
    },
    location: {
      id: server.locationId,
      slug: server.locationSlug,
      name: server.locationName,
      country: server.country,
    },
    image: { id: server.imageId, slug: server.imageSlug, name: server.imageName, family: server.imageFamily },
    iso: server.iso && { id: server.iso.id, slug: server.iso.slug, name: server.iso.name },
    public_ips: server.addresses.map((given) => ({
      address: given.address,
      family: given.family,
      prefix_length: given.prefixLength,
      gateway: given.gateway,
      primary: given.isPrimary,
      reverse_dns: given.reverseDns,
    })),
    private_networks: server.privateNetworks.map(showAttachment),
    firewall: {
      enabled: server.firewall?.isEnabled ?? false,
      status: server.firewall?.status ?? 'applied',
      rule_count: server.firewall?.ruleCount ?? 0,
    },
    billing: {
      cycle: 'hourly',
      price_hourly: formatQuanta(server.hourlyQuanta),
      price_monthly_cap: formatQuanta(server.monthlyCapQuanta),
      currency,
      started_at: server.provisionedAt?.toISOString() ?? null,
    },
    current_action: server.currentAction === null ? null : showAction(server.currentAction),
    failure:
      server.failure === null
        ? null
        : {
            code: server.failure.code,
            message: server.failure.message,
            at: server.failure.at,
            operator_action_required: true,
          },
    labels: server.labels,
    created_at: server.createdAt.toISOString(),
    provisioned_at: server.provisionedAt?.toISOString() ?? null,
    updated_at: server.updatedAt.toISOString(),
  };
}

/** An interface on a private network, as it stands in a server and in answers about it. */
export function showAttachment(nic: Attachment): schemas.PrivateNetworkAttachment {
  return {
    network_id: nic.networkId,
    name: nic.name,
    cidr: nic.cidr,
    ip: nic.ip,
    mac_address: nic.macAddress,
    state: nic.state,
    requires_reboot: nic.requiresReboot,
    is_last_interface: nic.isLastInterface,
    attached_at: nic.attachedAt,
  };
}

export function showAction(action: ServerAction): schemas.ServerAction {
  return {
    id: action.id,
    command: action.command,
    server_id: action.serverId,
    status: action.status,
    progress: action.progress,
    changed: action.changed,
    outcome: action.outcome as schemas.ServerAction['outcome'],
    requested_by_key: action.requestedByKey,
    created_at: action.createdAt,
    started_at: action.startedAt,
    finished_at: action.finishedAt,
    error: action.error,
  };
}

/** What a rebuild, a resize or a restore would come to. */
export function showActionForecast(
  action: ServerAction,
  forecast: { isRestarted: boolean; hourlyQuanta: number; monthlyCapQuanta: number; dueQuanta: number },
  currency: string,
): schemas.ActionForecast {
  return {
    command: action.command as schemas.ActionForecast['command'],
    server_id: action.serverId,
    changes: action.changed,
    restarts: forecast.isRestarted,
    erases_disk: action.command !== 'resize',
    price_hourly: formatQuanta(forecast.hourlyQuanta),
    price_monthly_cap: formatQuanta(forecast.monthlyCapQuanta),
    due_now: formatQuanta(forecast.dueQuanta),
    currency,
  };
}

/** What a create would come to. */
export function showForecast(forecast: ServerForecast, currency: string): schemas.ServerForecast {
  const { dueQuanta, afterFirstDayQuanta } = forecast;
  return {
    would_create: forecast.reason === null,
    eligible: forecast.isEligible,
    reason: forecast.reason,
    due_now: dueQuanta === null ? null : formatQuanta(dueQuanta),
    price_hourly: formatQuanta(forecast.hourlyQuanta),
    price_monthly_cap: formatQuanta(forecast.monthlyCapQuanta),
    currency,
    credit_after_first_day: afterFirstDayQuanta === null ? null : formatQuanta(afterFirstDayQuanta),
  };
}

/** A workspace, with what its account gate would say to a call (`api_access`). */
export function showTenant(
  tenant: ReachableTenant,
  facts: AccessFacts | undefined,
  counts: { servers: number; networks: number },
  isDefault: boolean,
): schemas.Tenant {
  const refusal = facts === undefined ? null : judgeAccess(facts);
  const isUnbilled = facts !== undefined && facts.status === 'ACTIVE' && !facts.hasBillingProfile;
  return {
    id: tenant.id,
    name: tenant.name,
    slug: tenant.slug,
    status: isUnbilled ? 'no_billing_profile' : (tenant.status.toLowerCase() as schemas.Tenant['status']),
    is_default: isDefault,
    billing_account_id: tenant.id,
    currency: tenant.currency,
    server_count: counts.servers,
    network_count: counts.networks,
    api_access: { allowed: refusal === null, code: refusal?.code ?? null, reason: refusal?.reason ?? null },
    created_at: tenant.createdAt,
  };
}
