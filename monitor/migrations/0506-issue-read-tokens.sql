-- Tokens with which programs read a site's traffic. The secret is stored as a digest; an ended token stays for the audit
-- trail's sake until its site goes.
create table read_tokens (
  id text primary key,
  site_id bigint not null references sites,
  name text not null,
  digest bytea not null,
  created_by text not null,
  created_at timestamptz not null default svc_now(),
  -- Null: it has no end.
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index read_tokens_site_id on read_tokens (site_id);
