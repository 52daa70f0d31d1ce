-- Views of the traffic explorer under a name: the query of its URL. A view is of one person on one surface; operators may
-- save one of the console for all of them.
create table saved_views (
  id bigint generated always as identity primary key,
  person_id bigint not null references people,
  surface text not null check (surface in ('portal', 'console')),
  is_shared boolean not null check (not is_shared or surface = 'console'),
  name text not null,
  -- Without a question mark, values in one order.
  query text not null,
  created_at timestamptz not null default svc_now()
);
create unique index saved_views_own on saved_views (person_id, surface, lower(name)) where not is_shared;
create unique index saved_views_shared on saved_views (surface, lower(name)) where is_shared;
create index saved_views_person_id on saved_views (person_id);
