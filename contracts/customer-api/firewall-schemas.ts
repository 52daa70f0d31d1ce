/** Bodies about firewalls. */
import { type Static, Type } from 'typebox';
import { firewallProtocols } from '../ip-protocols.ts';
import { Nullable } from '../scalars.ts';
import { Id, Moment, OneOf } from './schema-kit.ts';

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
    rules: Type.Array(
      Type.Object({
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
        editable: Type.Boolean({ description: 'Editable in the portal.' }),
      }),
      { description: 'In order: the first matching rule applies.' },
    ),
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
