/**
 * Every endpoint of the customer API. The server registers its routes from this list and the OpenAPI document is made
 * of it, so what is documented, validated and served can't differ.
 */

import { addressEndpoints } from './address-endpoints.ts';
import { bandwidthEndpoints } from './bandwidth-endpoints.ts';
import { catalogEndpoints } from './catalog-endpoints.ts';
import { findingEndpoints } from './finding-endpoints.ts';
import { firewallEndpoints } from './firewall-endpoints.ts';
import { incidentEndpoints } from './incident-endpoints.ts';
import { keyEndpoints } from './key-endpoints.ts';
import { ledgerEndpoints } from './ledger-endpoints.ts';
import { networkEndpoints } from './network-endpoints.ts';
import { portEndpoints } from './port-endpoints.ts';
import { serverEndpoints } from './server-endpoints.ts';
import { snapshotEndpoints } from './snapshot-endpoints.ts';
import { sshKeyEndpoints } from './ssh-key-endpoints.ts';
import { tenantEndpoints } from './tenant-endpoints.ts';
import { trafficEndpoints } from './traffic-endpoints.ts';
import { usageEndpoints } from './usage-endpoints.ts';
import { webhookEndpoints } from './webhook-endpoints.ts';

export const endpoints = [
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

export type EndpointId = (typeof endpoints)[number]['id'];
