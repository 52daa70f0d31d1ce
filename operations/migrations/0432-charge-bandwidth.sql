-- The part of a server's UTC day that attacks on it and from it were, by the monitor's minutes and the incidents that these belong to: it
-- does not count against the pool. Kept as long as the days.
create table bandwidth_attacks (
  server_id bigint not null references servers (id),
  day date not null,
  inbound_bytes bigint not null check (inbound_bytes >= 0),
  outbound_bytes bigint not null check (outbound_bytes >= 0),
  primary key (server_id, day)
);

-- What a month's traffic beyond the pool costs and how large the pool is: noted while the month runs, the better of what it was for the
-- customer whenever it changed. A month that is settled never changes again.
create table bandwidth_terms (
  month date primary key check (extract(day from month) = 1),
  tb_quanta bigint not null check (tb_quanta >= 0),
  counts text not null check (counts in ('outbound', 'total')),
  base_bytes bigint not null,
  per_server_bytes bigint not null,
  tenure_year_bytes bigint not null,
  tenure_max_bytes bigint not null,
  settled_at timestamptz
);

-- An account's month that costs something beyond the pool. The figures are written once, with the charge.
create table bandwidth_months (
  tenant_id bigint not null references tenants (id),
  month date not null check (extract(day from month) = 1),
  -- Up to which share of its pool the account has been told.
  told_percent smallint not null default 0,
  used_bytes bigint,
  allowance_bytes bigint,
  charged_quanta bigint,
  settled_at timestamptz,
  primary key (tenant_id, month),
  check (num_nulls(used_bytes, allowance_bytes, charged_quanta, settled_at) in (0, 4))
);
