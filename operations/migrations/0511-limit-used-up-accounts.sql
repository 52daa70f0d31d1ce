-- Accounts choose what happens once their bandwidth pool is used up: more traffic is charged, or their servers are limited in speed and nothing
-- is charged. In a month without a row the choice of the last month before it holds from the beginning.
create table bandwidth_choices (
  tenant_id bigint not null references tenants (id),
  month date not null check (extract(day from month) = 1),
  when_used_up text not null check (when_used_up in ('charge', 'limit')),
  -- Beyond the pool when the present choice was made.
  since_bytes bigint not null check (since_bytes >= 0),
  -- Used beyond the pool in this month while an earlier choice was the limit.
  free_bytes bigint not null check (free_bytes >= 0),
  primary key (tenant_id, month)
);

-- From when on the account's servers are limited in this month.
alter table bandwidth_months add column limited_at timestamptz;

-- Speed limits as hypervisors have confirmed them.
create table server_speeds (
  server_id bigint primary key references servers (id),
  mbit integer check (mbit > 0),
  -- When the hypervisor was asked for another one, which it has not confirmed yet.
  asked_at timestamptz
);
create index server_speeds_limited on server_speeds (server_id) where mbit is not null;
