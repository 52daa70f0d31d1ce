-- What lists and charts of applications are read from, made of a site's minute once its facts have settled: who counts in
-- it, and what each name exchanged. A list of any range then reads names and no facts; only addresses and pairs of the
-- names that are shown are unpacked.

-- Minutes whose facts have changed since they were judged. They are read from the facts.
create table unjudged_minutes (
  site_id bigint not null references sites,
  minute timestamptz not null,
  since timestamptz not null default svc_now(),
  marked_at timestamptz not null default svc_now(),
  primary key (site_id, minute)
);
create index unjudged_minutes_minute on unjudged_minutes (minute);

-- Of each minute, direction and local address the capture that counts (NET-2.2.5).
create table minute_owners (
  minute timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  local inet not null,
  capture_id bigint not null,
  vantage smallint not null
) partition by range (minute);
create index minute_owners_site_minute on minute_owners (site_id, minute);

-- What a name exchanged in a minute. Bytes are null where only the name is known. `locals` are its local addresses, one
-- after the other as `inet_send` writes them; one may stand there twice. The row without a name is the bytes of all.
drop table application_minutes;
create table name_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text,
  protocol smallint not null,
  server_port integer,
  inbound_bytes numeric,
  outbound_bytes numeric,
  evidence smallint not null,
  is_attributed boolean not null,
  owner smallint,
  seen smallint not null,
  last_sent_at timestamptz,
  locals bytea not null
) partition by range (minute);
create index name_minutes_site_minute on name_minutes (site_id, minute);
create index name_minutes_name on name_minutes (site_id, name, minute);

-- The same of ten minutes, so that the ends of a range are few rows.
create table name_tens (
  start timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text,
  protocol smallint not null,
  server_port integer,
  inbound_bytes numeric,
  outbound_bytes numeric,
  evidence smallint not null,
  is_attributed boolean not null,
  owner smallint,
  seen smallint not null,
  last_sent_at timestamptz,
  locals bytea not null
) partition by range (start);
create index name_tens_site_start on name_tens (site_id, start);

-- Hours and days are read by the thousand to find the names that are shown, so their addresses stand apart.
create table name_hours (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text,
  protocol smallint not null,
  server_port integer,
  inbound_bytes numeric,
  outbound_bytes numeric,
  evidence smallint not null,
  is_attributed boolean not null,
  owner smallint,
  seen smallint not null,
  last_sent_at timestamptz
) partition by range (hour);
create table name_hour_locals (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  locals bytea not null
) partition by range (hour);
create index name_hour_locals_name on name_hour_locals (site_id, name, hour);
create index name_hours_site_hour on name_hours (site_id, hour);
create index name_hours_name on name_hours (site_id, name, hour);

create table name_days (
  day timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text,
  protocol smallint not null,
  server_port integer,
  inbound_bytes numeric,
  outbound_bytes numeric,
  evidence smallint not null,
  is_attributed boolean not null,
  owner smallint,
  seen smallint not null,
  last_sent_at timestamptz
) partition by range (day);
create table name_day_locals (
  day timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  locals bytea not null
) partition by range (day);
create index name_day_locals_name on name_day_locals (site_id, name, day);
create index name_days_site_day on name_days (site_id, day);

-- The exact pairs of a name, for their 24 hours: client and server as `inet_send` writes them, then the bytes of both
-- directions as `float8send` does, NaN where only the name is known. A pair may stand there twice; its bytes add.
create table name_pair_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  pairs bytea not null
) partition by range (minute);
create index name_pair_minutes_site_minute on name_pair_minutes (site_id, minute);

create table name_pair_tens (
  start timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  pairs bytea not null
) partition by range (start);
create index name_pair_tens_site_start on name_pair_tens (site_id, start);

create table name_pair_hours (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  pairs bytea not null
) partition by range (hour);
create index name_pair_hours_site_hour on name_pair_hours (site_id, hour);
create index name_pair_hours_name on name_pair_hours (site_id, name, hour);

-- Says of a site's ten minutes whether `name_tens` and `name_pair_tens` hold them.
create table rolled_tens (
  site_id bigint not null references sites,
  start timestamptz not null,
  is_dirty boolean not null,
  marked_at timestamptz not null default svc_now(),
  rolled_at timestamptz,
  primary key (site_id, start)
);
create index rolled_tens_dirty on rolled_tens (start) where is_dirty;
create index rolled_tens_start on rolled_tens (start);

-- Says of a site's day whether `name_days` holds it.
create table rolled_days (
  site_id bigint not null references sites,
  day timestamptz not null,
  is_dirty boolean not null,
  marked_at timestamptz not null default svc_now(),
  rolled_at timestamptz,
  primary key (site_id, day)
);
create index rolled_days_dirty on rolled_days (day) where is_dirty;
create index rolled_days_day on rolled_days (day);

-- What one address used is read as well; its rows of an hour are written side by side.
create index application_hours_local on application_hours (site_id, local, hour);

-- What was there before this migration has to be judged as well.
insert into unjudged_minutes (site_id, minute) select site_id, minute from site_minutes;
update rolled_hours set is_dirty = true;
insert into rolled_tens (site_id, start, is_dirty)
  select distinct site_id, date_bin('10 minutes', minute, timestamptz 'epoch'), true from site_minutes;
insert into rolled_days (site_id, day, is_dirty) select distinct site_id, date_trunc('day', minute, 'UTC'), true from site_minutes;
