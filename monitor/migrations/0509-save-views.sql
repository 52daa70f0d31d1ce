-- Views of the explorer that operators named: the query of its URL. They are of a site, for everyone who sees it.
create table saved_views (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  name text not null,
  -- Without a question mark, values in one order.
  query text not null,
  created_by text not null,
  created_at timestamptz not null default svc_now()
);
create unique index saved_views_name on saved_views (site_id, lower(name));
