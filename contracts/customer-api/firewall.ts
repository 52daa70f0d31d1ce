/** Bodies about firewalls. */
import { type Static, Type } from 'typebox';
import { firewallProtocols } from '#contracts/ip-protocols.ts';
import { Nullable } from '../scalars.ts';
import { both, type EndpointDeclaration, ok } from './endpoint.ts';
import { Id, Moment, OneOf, RequestBody, SelectionRequest, Titled } from './schema-kit.ts';

const Direction = OneOf(['inbound', 'outbound']);
const Verdict = OneOf(['accept', 'drop']);
const Protocol = OneOf(firewallProtocols);
const Status = OneOf(['applied', 'pending', 'failed'], 'Whether the hypervisor has this version.');

export const FirewallSummary = Type.Object({
  enabled: Type.Boolean({ description: 'False: the firewall is off.' }),
  status: Status,
  rule_count: Type.Integer({ minimum: 0 }),
});
export type FirewallSummary = Static<typeof FirewallSummary>;

export const FirewallRule = Titled('FirewallRule', {
  id: Id,
  position: Type.Integer({ minimum: 1 }),
  direction: Direction,
  action: Verdict,
  protocol: Protocol,
  ports: Nullable(Type.String({ description: 'Destination port: `80` or `8000-9000`; null: all.' })),
  sources: Type.Array(Type.String()),
  destinations: Type.Array(Type.String()),
  description: Type.String(),
  group_id: Nullable(Id),
  editable: Type.Boolean({ description: 'Editable by you.' }),
});
export type FirewallRule = Static<typeof FirewallRule>;

const Prefixes = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 50 }), { maxItems: 20, description }));

const ruleFields = {
  direction: Direction,
  action: Verdict,
  protocol: Protocol,
  ports: Type.Optional(
    Nullable(Type.String({ minLength: 1, maxLength: 11, description: '`80` or `8000-9000`; null: all.' })),
  ),
  sources: Prefixes('Of an inbound rule: addresses or blocks such as `198.51.100.0/24`. None: all.'),
  destinations: Prefixes('Of an outbound rule: addresses or blocks. None: all.'),
  description: Type.Optional(Type.String({ maxLength: 80 })),
};
const RuleInSet = Type.Object(ruleFields, { additionalProperties: false });
export type RuleInSet = Static<typeof RuleInSet>;

export const ReplaceFirewallRequest = RequestBody('ReplaceFirewallRequest', {
  enabled: Type.Boolean({ description: 'False: all traffic passes.' }),
  policies: Type.Object(
    { inbound: Verdict, outbound: Verdict },
    { additionalProperties: false, description: 'Default action for traffic that no rule matches.' },
  ),
  rules: Type.Array(RuleInSet, {
    maxItems: 50,
    description: 'All rules, in order. A rule that is there already keeps its id.',
  }),
});
export type ReplaceFirewallRequest = Static<typeof ReplaceFirewallRequest>;

export const AddFirewallRuleRequest = RequestBody('AddFirewallRuleRequest', {
  ...ruleFields,
  position: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 50, description: 'Among the rules; at their end by default.' }),
  ),
});
export type AddFirewallRuleRequest = Static<typeof AddFirewallRuleRequest>;

export const ReplaceFirewallRuleRequest = RequestBody('ReplaceFirewallRuleRequest', { ...ruleFields });
export type ReplaceFirewallRuleRequest = Static<typeof ReplaceFirewallRuleRequest>;

export const ServerFirewall = Titled('ServerFirewall', {
  server_id: Id,
  enabled: Type.Boolean({ description: 'False: the firewall is off.' }),
  policies: Type.Object(
    { inbound: Verdict, outbound: Verdict },
    { description: 'Default action for traffic that no rule matches.' },
  ),
  status: Status,
  applied_at: Nullable(Moment),
  version: Type.Integer({ minimum: 0, description: 'Incremented with every change.' }),
  fingerprint: Type.String({ description: 'Hash of the effective rules.' }),
  groups: Type.Array(Type.Object({ id: Id, name: Type.String() })),
  rules: Type.Array(FirewallRule, { description: 'In order: the first matching rule applies.' }),
  implicit_rules: Type.Array(
    Type.Object({ direction: Direction, action: Verdict, protocol: Protocol, description: Type.String() }),
    { description: 'Platform rules, applied first. They can’t be edited.' },
  ),
});
export type ServerFirewall = Static<typeof ServerFirewall>;

const onRule = { id: 'server', rule_id: 'firewall-rule' } as const;
const changeErrors = ['firewall_not_supported'] as const;

export const firewallEndpoints = [
  {
    id: 'readServerFirewall',
    call: 'GET /servers/{id}/firewall',
    versions: both,
    summary: 'Read the firewall of a server',
    description:
      'The firewall at the public network interface of the server: default actions, rules in order, the platform’s rules, and whether the hypervisor has the newest version.',
    params: { id: 'server' },
    responses: ok(ServerFirewall, 'The firewall.'),
  },
  {
    id: 'replaceServerFirewall',
    call: 'PUT /servers/{id}/firewall',
    params: { id: 'server' },
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
    errors: changeErrors,
  },
  {
    id: 'addFirewallRule',
    call: 'POST /servers/{id}/firewall/rules',
    params: { id: 'server' },
    summary: 'Add a firewall rule',
    description:
      'Adds one rule at the end or at `position`, and applies the firewall. It filters only while the firewall is enabled.',
    body: AddFirewallRuleRequest,
    headers: ['Idempotency-Key', 'If-Match'],
    responses: { 201: { description: 'The rule.', schema: FirewallRule, headers: ['Idempotent-Replayed'] } },
    errors: changeErrors,
  },
  {
    id: 'replaceFirewallRule',
    call: 'PUT /servers/{id}/firewall/rules/{rule_id}',
    params: onRule,
    summary: 'Replace a firewall rule',
    description: 'Replaces one rule, which keeps its id and position, and applies the firewall.',
    body: ReplaceFirewallRuleRequest,
    headers: ['If-Match'],
    responses: { 200: { description: 'The rule.', schema: FirewallRule } },
    errors: changeErrors,
  },
  {
    id: 'removeFirewallRule',
    call: 'DELETE /servers/{id}/firewall/rules/{rule_id}',
    params: onRule,
    summary: 'Remove a firewall rule',
    description: 'Removes one rule and applies the firewall.',
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 204: { description: 'Removed.' } },
    errors: changeErrors,
  },
] as const satisfies readonly EndpointDeclaration[];
