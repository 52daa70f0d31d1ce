-- Full scans that customers and operations asked for: what operations listed, and what it was told.
create table scan_requests (
  id uuid primary key,
  cluster_id bigint not null,
  vm_id bigint not null,
  allocation_id bigint not null,
  address inet not null,
  -- Echoed exactly.
  assigned_at text not null,
  kind text not null check (kind in ('manual', 'automatic')),
  requested_at timestamptz not null,
  expires_at timestamptz not null,
  -- Operations' own, as listed.
  revision bigint not null,
  -- The revision of our connection under which it was listed last: that confirms it (NET-2.7.9).
  connection_revision bigint not null,
  listed_at timestamptz not null default svc_now(),
  -- The site that claimed it.
  site_id bigint references sites,
  state text not null default 'listed' check (state in ('listed', 'claimed', 'ended')),
  -- Why it ended here: operations' answer, `unlisted` or `withdrawn`.
  ended_by text,
  ended_at timestamptz,
  -- When operations was told last, and the heartbeat that it knows.
  told_at timestamptz,
  told_heartbeat_at timestamptz
);
create index scan_requests_server on scan_requests (cluster_id, vm_id, address);
create index scan_requests_site on scan_requests (site_id);
create index scan_requests_listed_at on scan_requests (listed_at);

-- What operations answered about the result, and when.
alter table scan_attempts add column delivered_at timestamptz, add column delivery_outcome text;
create index scan_attempts_undelivered on scan_attempts (result_at) where result_at is not null and delivered_at is null;
