/**
 * Every endpoint of the customer API. The server registers its routes from this list and the OpenAPI document is made
 * of it, so what is documented, validated and served can't differ.
 */

import { addressEndpoints } from './addresses.ts';
import { bandwidthEndpoints } from './bandwidth.ts';
import { catalogEndpoints } from './catalog.ts';
import { completeEndpoint, type Endpoint } from './endpoint.ts';
import { findingEndpoints } from './findings.ts';
import { firewallEndpoints } from './firewall.ts';
import { incidentEndpoints } from './incidents.ts';
import { keyEndpoints } from './keys.ts';
import { ledgerEndpoints } from './ledger.ts';
import { networkEndpoints } from './networks.ts';
import { portEndpoints } from './ports.ts';
import { serverEndpoints } from './server-endpoints.ts';
import { snapshotEndpoints } from './snapshots.ts';
import { sshKeyEndpoints } from './ssh-keys.ts';
import { tenantEndpoints } from './tenants.ts';
import { trafficEndpoints } from './traffic.ts';
import { usageEndpoints } from './usage.ts';
import { webhookEndpoints } from './webhooks.ts';

const declared = [
  ...tenantEndpoints,
  ...serverEndpoints,
  ...snapshotEndpoints,
  ...networkEndpoints,
  ...addressEndpoints,
  ...bandwidthEndpoints,
  ...trafficEndpoints,
  ...incidentEndpoints,
  ...portEndpoints,
  ...findingEndpoints,
  ...firewallEndpoints,
  ...keyEndpoints,
  ...usageEndpoints,
  ...catalogEndpoints,
  ...sshKeyEndpoints,
  ...ledgerEndpoints,
  ...webhookEndpoints,
] as const;

export type EndpointId = (typeof declared)[number]['id'];
export const endpoints: readonly Endpoint[] = declared.map(completeEndpoint);
