-- Uploads as they came, stored before they are acknowledged. The identity makes a redelivery harmless: the row stays
-- as a tombstone without its body after the upload was applied.
create table inbox_uploads (
  id bigint generated always as identity primary key,
  sensor_id bigint not null references sensors,
  spool_id uuid not null,
  sequence bigint not null,
  site_id bigint not null references sites,
  state text not null default 'pending' check (state in ('pending', 'applied', 'rejected')),
  -- SHA-256 of the decompressed bytes: tells a redelivery from another upload under a used number.
  digest bytea not null,
  encoding text not null,
  body bytea,
  first_minute timestamptz,
  last_minute timestamptz,
  received_at timestamptz not null default svc_now(),
  attempts integer not null default 0,
  due_at timestamptz not null default svc_now(),
  last_error text,
  finished_at timestamptz,
  unique (sensor_id, spool_id, sequence),
  check ((state = 'pending') = (body is not null))
);
create index inbox_uploads_pending on inbox_uploads (id) where state = 'pending';
create index inbox_uploads_finished on inbox_uploads (finished_at) where state <> 'pending';
create index inbox_uploads_site_id on inbox_uploads (site_id);

-- Every number up to `covered_through` of a spool is finished, so their tombstones may go: the number alone tells
-- that an upload is a duplicate.
create table inbox_spools (
  sensor_id bigint not null references sensors,
  spool_id uuid not null,
  covered_through bigint not null default 0,
  primary key (sensor_id, spool_id)
);
