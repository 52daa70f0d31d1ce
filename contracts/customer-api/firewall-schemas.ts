/** Bodies about firewalls. */
import { type Static, Type } from 'typebox';
import { firewallProtocols } from '../ip-protocols.ts';
import { Nullable } from '../scalars.ts';
import { Id, Moment, OneOf, TenantSelector } from './schema-kit.ts';

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

export const FirewallRule = Type.Object(
  {
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
  },
  { title: 'FirewallRule' },
);
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

export const ReplaceFirewallRequest = Type.Object(
  {
    enabled: Type.Boolean({ description: 'False: all traffic passes.' }),
    policies: Type.Object(
      { inbound: Verdict, outbound: Verdict },
      { additionalProperties: false, description: 'Default action for traffic that no rule matches.' },
    ),
    rules: Type.Array(RuleInSet, {
      maxItems: 50,
      description: 'All rules, in order. A rule that is there already keeps its id.',
    }),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'ReplaceFirewallRequest', additionalProperties: false },
);
export type ReplaceFirewallRequest = Static<typeof ReplaceFirewallRequest>;

export const AddFirewallRuleRequest = Type.Object(
  {
    ...ruleFields,
    position: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 50, description: 'Among the rules; at their end by default.' }),
    ),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'AddFirewallRuleRequest', additionalProperties: false },
);
export type AddFirewallRuleRequest = Static<typeof AddFirewallRuleRequest>;

export const ReplaceFirewallRuleRequest = Type.Object(
  { ...ruleFields, tenant: Type.Optional(TenantSelector) },
  { title: 'ReplaceFirewallRuleRequest', additionalProperties: false },
);
export type ReplaceFirewallRuleRequest = Static<typeof ReplaceFirewallRuleRequest>;

export const ServerFirewall = Type.Object(
  {
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
      Type.Object({
        direction: Direction,
        action: Verdict,
        protocol: Protocol,
        description: Type.String(),
      }),
      { description: 'Platform rules, applied first. They can’t be edited.' },
    ),
  },
  { title: 'ServerFirewall' },
);
export type ServerFirewall = Static<typeof ServerFirewall>;
