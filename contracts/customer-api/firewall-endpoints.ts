import { bodyErrors, both, conditionErrors, type Endpoint, idempotencyErrors, ok } from './endpoint.ts';
import {
  AddFirewallRuleRequest,
  FirewallRule,
  ReplaceFirewallRequest,
  ReplaceFirewallRuleRequest,
  ServerFirewall,
} from './firewall-schemas.ts';
import { SelectionRequest } from './schema-kit.ts';

/** What the changes have in common. */
const change = {
  versions: ['v2'],
  params: { id: 'server' },
  selectsTenant: true,
} as const;
const onRule = { ...change, params: { id: 'server', rule_id: 'firewall-rule' } } as const;
const changeErrors = [
  ...bodyErrors,
  ...conditionErrors,
  'not_found',
  'read_only_key',
  'firewall_not_supported',
] as const;

export const firewallEndpoints = [
  {
    id: 'readServerFirewall',
    method: 'GET',
    path: '/servers/{id}/firewall',
    versions: both,
    summary: 'Read the firewall of a server',
    description:
      'The firewall at the public network interface of the server: default actions, rules in order, the platform’s rules, and whether the hypervisor has the newest version.',
    params: { id: 'server' },
    selectsTenant: true,
    responses: ok(ServerFirewall, 'The firewall.'),
    errors: ['not_found'],
  },
  {
    ...change,
    id: 'replaceServerFirewall',
    method: 'PUT',
    path: '/servers/{id}/firewall',
    summary: 'Replace the firewall of a server',
    description:
      'Sets default actions and all rules, and applies them as one version. What is there already is left alone, so a repetition changes nothing. `status` is `pending` until the hypervisor has the rules: wait with `Prefer: wait=N` or for the event `firewall.applied`.',
    body: ReplaceFirewallRequest,
    headers: ['If-Match', 'Prefer'],
    responses: {
      200: {
        description: 'The firewall, applied.',
        schema: ServerFirewall,
        headers: ['ETag', 'Preference-Applied'],
      },
      202: {
        description: 'The firewall, being applied.',
        schema: ServerFirewall,
        headers: ['ETag', 'Preference-Applied'],
      },
    },
    errors: [...changeErrors],
  },
  {
    ...change,
    id: 'addFirewallRule',
    method: 'POST',
    path: '/servers/{id}/firewall/rules',
    summary: 'Add a firewall rule',
    description:
      'Adds one rule at the end or at `position`, and applies the firewall. It filters only while the firewall is enabled.',
    body: AddFirewallRuleRequest,
    headers: ['Idempotency-Key', 'If-Match'],
    responses: {
      201: { description: 'The rule.', schema: FirewallRule, headers: ['Idempotent-Replayed'] },
    },
    errors: [...changeErrors, ...idempotencyErrors],
  },
  {
    ...onRule,
    id: 'replaceFirewallRule',
    method: 'PUT',
    path: '/servers/{id}/firewall/rules/{rule_id}',
    summary: 'Replace a firewall rule',
    description: 'Replaces one rule, which keeps its id and position, and applies the firewall.',
    body: ReplaceFirewallRuleRequest,
    headers: ['If-Match'],
    responses: { 200: { description: 'The rule.', schema: FirewallRule } },
    errors: [...changeErrors],
  },
  {
    ...onRule,
    id: 'removeFirewallRule',
    method: 'DELETE',
    path: '/servers/{id}/firewall/rules/{rule_id}',
    summary: 'Remove a firewall rule',
    description: 'Removes one rule and applies the firewall.',
    body: SelectionRequest,
    isBodyOptional: true,
    headers: ['If-Match'],
    responses: { 204: { description: 'Removed.' } },
    errors: [...changeErrors],
  },
] as const satisfies readonly Endpoint[];
