-- Each site's application ranking of 24 hours by view, recomputed every five minutes; readers never wait for it.
create table application_rankings (
  site_id bigint not null references sites,
  view text not null,
  from_minute timestamptz not null,
  to_minute timestamptz not null,
  computed_at timestamptz not null default svc_now(),
  ranking jsonb not null,
  primary key (site_id, view)
);
