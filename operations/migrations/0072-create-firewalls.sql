-- What customers want filtered at their servers' public cards. A server without a row has no firewall. `version` rises
-- with every change; what the hypervisor has is `applied_version`.
create table firewalls (
  server_id bigint primary key references servers (id),
  enabled boolean not null,
  inbound_policy text not null check (inbound_policy in ('accept', 'drop')),
  outbound_policy text not null check (outbound_policy in ('accept', 'drop')),
  version integer not null default 1,
  status text not null default 'pending' check (status in ('pending', 'applied', 'failed')),
  applied_version integer,
  applied_at timestamptz,
  updated_at timestamptz not null default svc_now()
);

-- Rules in their order; the first that fits decides. No peers: everybody. No ports: all of them.
create table firewall_rules (
  id bigint generated always as identity primary key,
  server_id bigint not null references firewalls (server_id),
  position integer not null check (position > 0),
  direction text not null check (direction in ('inbound', 'outbound')),
  action text not null check (action in ('accept', 'drop')),
  protocol text not null check (protocol in ('any', 'tcp', 'udp', 'icmp')),
  ports text check (ports is null or protocol in ('tcp', 'udp')),
  peers text[] not null,
  description text not null,
  constraint firewall_rules_position unique (server_id, position) deferrable initially deferred
);
create index firewall_rules_server_id on firewall_rules (server_id);

alter table simulated_guests add column firewall jsonb;
