-- Whether the hypervisor lets a server send from its own addresses only. A server without a row is guarded.
create table server_guards (
  server_id bigint primary key references servers (id),
  is_on boolean not null,
  version integer not null default 1,
  status text not null default 'pending' check (status in ('pending', 'applied', 'failed')),
  changed_at timestamptz not null default svc_now()
);

-- The last totals that guards reported; a total that fell began anew.
create table guard_readings (
  server_id bigint not null references servers (id),
  device text not null,
  reason text not null,
  packets bigint not null check (packets >= 0),
  primary key (server_id, device, reason)
);

-- What guards dropped: one row for packets of one reason at one interface, from the first until ten minutes without any.
create table spoofing_attempts (
  id bigint generated always as identity primary key,
  server_id bigint not null references servers (id),
  device text not null,
  -- The private network; null: the public interface.
  network_id bigint,
  reason text not null,
  packets bigint not null check (packets > 0),
  -- MACs and addresses that the packets claimed as their source, where the reason is one of these.
  sources text[] not null,
  began_at timestamptz not null default svc_now(),
  last_at timestamptz not null default svc_now()
);
create index spoofing_attempts_server on spoofing_attempts (server_id, last_at desc);
create index spoofing_attempts_last_at on spoofing_attempts (last_at);
