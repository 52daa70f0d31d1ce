import { both, type Endpoint, ok } from './endpoint.ts';
import { ServerFirewall } from './firewall-schemas.ts';

/** Firewalls are edited in the portal and read here. */
export const firewallEndpoints = [
  {
    id: 'readServerFirewall',
    method: 'GET',
    path: '/servers/{id}/firewall',
    versions: both,
    summary: 'Read the firewall of a server',
    description:
      'The firewall at the public network interface of the server: default actions, rules in order, the platform’s rules, and whether the hypervisor has the newest version. Rules are edited in the portal.',
    params: { id: 'server' },
    selectsTenant: true,
    responses: ok(ServerFirewall, 'The firewall.'),
    errors: ['not_found'],
  },
] as const satisfies readonly Endpoint[];
