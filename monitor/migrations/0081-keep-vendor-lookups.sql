-- What a public registry said of a 24-bit vendor prefix. A prefix with a name is never asked about again; one without
-- was tried then, and is not tried again for twelve hours (NET-2.1.5).
create table vendor_lookups (
  prefix text primary key check (prefix ~ '^[0-9A-F]{6}$'),
  manufacturer text,
  tried_at timestamptz not null default svc_now()
);
create index devices_unresolved on devices (id) where manufacturer is null;
