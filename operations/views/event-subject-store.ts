/** Whose event it is, as a query that the insert of the event takes its row from. */

import { sql } from 'kysely';
import type { WebhookEventType } from '#contracts/customer-api/index.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';

type AttackEventType = Extract<WebhookEventType, `server.attack_${string}`>;
type PortEventType = Extract<WebhookEventType, `server.port_${string}`>;
type ScanEventType = Extract<WebhookEventType, 'server.scan_completed'>;
type FindingEventType = Extract<WebhookEventType, 'server.finding_new'>;

/** Whose event it is follows from the thing that it is about, never from what a caller says. */
export type NewEvent =
  | { type: AttackEventType; serverId: number; incidentId: string }
  | {
      type: PortEventType;
      serverId: number;
      scanId: string;
      address: string;
      transport: ScanTransport;
      port: number;
    }
  | { type: ScanEventType; serverId: number; scanId: string; address: string }
  | {
      type: FindingEventType;
      serverId: number;
      address: string;
      transport: ScanTransport;
      port: number;
      cveId: string;
      fingerprint: string;
      severity: string | null;
    }
  | {
      type: Exclude<
        Extract<WebhookEventType, `server.${string}`>,
        AttackEventType | PortEventType | ScanEventType | FindingEventType
      >;
      serverId: number;
    }
  | { type: Extract<WebhookEventType, 'action.finished'>; serverId: number; actionId: number }
  | {
      type: Extract<WebhookEventType, `network.${string}`>;
      networkId: number;
      tenantId: number;
    }
  | {
      type: Extract<WebhookEventType, 'usage.threshold'>;
      tenantId: number;
      /** `2025-11`. */
      period: string;
      percent: 50 | 80 | 100;
    }
  | { type: Extract<WebhookEventType, `key.${string}`>; keyId: string }
  | {
      type: Extract<WebhookEventType, 'account.locked'>;
      tenantId: number;
      reason: 'account_suspended' | 'account_closed';
    };

export function eventRow(event: NewEvent) {
  if ('actionId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('action_id', ${event.actionId}::bigint,
        'server_id', s.id, 'tenant_id', t.id, 'href', '/api/v2/servers/' || s.id || '/actions?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('incidentId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('incident_id', ${event.incidentId}::text,
        'server_id', s.id, 'tenant_id', t.id, 'href', '/api/v2/servers/' || s.id || '/incidents?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('scanId' in event) {
    const port =
      'port' in event
        ? sql`jsonb_build_object('transport', ${event.transport}::text, 'port', ${event.port}::int)`
        : sql`'{}'::jsonb`;
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('scan_id', ${event.scanId}::text,
        'server_id', s.id, 'tenant_id', t.id, 'address', ${event.address}::text,
        'href', '/api/v2/servers/' || s.id || '/ports?tenant=' || t.id) || ${port}
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('cveId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('server_id', s.id, 'tenant_id', t.id,
        'address', ${event.address}::text, 'transport', ${event.transport}::text, 'port', ${event.port}::int,
        'cve_id', ${event.cveId}::text, 'fingerprint', ${event.fingerprint}::text, 'severity', ${event.severity}::text,
        'href', '/api/v2/servers/' || s.id || '/findings?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('serverId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('server_id', s.id,
        'tenant_id', t.id, 'href', '/api/v2/servers/' || s.id || '?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('networkId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('network_id', ${event.networkId}::bigint,
        'tenant_id', t.id, 'href', '/api/v2/networks/' || ${event.networkId}::bigint || '?tenant=' || t.id)
      from tenants t where t.id = ${event.tenantId}`;
  }
  if ('keyId' in event) {
    return sql`select ${event.type}, k.organization_id, null::bigint, jsonb_build_object('key_id', k.key_id,
        'organization_id', k.organization_id, 'href', '/api/v2/key')
      from api_keys k where k.key_id = ${event.keyId}`;
  }
  if ('percent' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('tenant_id', t.id,
        'period', ${event.period}::text, 'percent', ${event.percent}::int,
        'href', '/api/v2/usage?period=' || ${event.period}::text || '&tenant=' || t.id)
      from tenants t where t.id = ${event.tenantId}`;
  }
  return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('tenant_id', t.id,
      'reason', ${event.reason}::text, 'href', '/api/v2/tenants')
    from tenants t where t.id = ${event.tenantId}`;
}
