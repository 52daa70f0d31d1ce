-- The one operations system that this monitor works with. The token is kept readable, because it has to be sent;
-- no page and no log shows it again.
create table operations_connection (
  id integer primary key default 1 check (id = 1),
  base_url text not null,
  token text not null,
  is_enabled boolean not null,
  -- Answer of the last discovery that succeeded; feeds are sent only where it names them.
  project_name text,
  capabilities jsonb not null default '{}',
  checked_at timestamptz,
  -- A fixed, safe description; null after a check that succeeded.
  check_error text,
  updated_at timestamptz not null default svc_now()
);

-- Signing secret of destroy notices. One at a time: a new one refuses the old one's signatures at once.
create table notice_secret (
  id integer primary key default 1 check (id = 1),
  secret text not null,
  created_at timestamptz not null default svc_now(),
  -- What shows a forgotten rotation: refusals since the secret was made.
  refused_count bigint not null default 0,
  last_refused_at timestamptz
);
