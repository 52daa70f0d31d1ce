-- Roll-ups: made from the facts of one site's hour, thrown away and made anew when facts arrive late. Whatever is read from
-- them is what the facts themselves would give; an hour with a mark, or one that is dirty, is read from the facts.

-- Says of a site's hour whether the tables below hold it.
create table rolled_hours (
  site_id bigint not null references sites,
  hour timestamptz not null,
  is_dirty boolean not null,
  marked_at timestamptz not null default svc_now(),
  rolled_at timestamptz,
  primary key (site_id, hour)
);
create index rolled_hours_dirty on rolled_hours (hour) where is_dirty;
create index rolled_hours_hour on rolled_hours (hour);
create index site_minute_marks_site on site_minute_marks (site_id, minute);
-- What was there before this migration has to be rolled up as well.
insert into rolled_hours (site_id, hour, is_dirty)
  select distinct site_id, date_trunc('hour', minute, 'UTC'), true from site_minutes;

-- An address's hour after selection, by who owned it. Null: nothing was selected for that owner.
create table address_hours (
  hour timestamptz not null,
  site_id bigint not null,
  address inet not null,
  device_key text not null,
  rx_bytes numeric,
  tx_bytes numeric,
  packets numeric,
  last_minute timestamptz,
  lan_rx_bytes numeric,
  lan_tx_bytes numeric
) partition by range (hour);
create index address_hours_site_hour on address_hours (site_id, hour);
create index address_hours_device on address_hours (site_id, device_key, hour);

-- An application's hour by local address and its owner. Bytes are null where only names are known.
create table application_hours (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  local inet not null,
  device_key text,
  inbound_bytes numeric,
  outbound_bytes numeric,
  evidence smallint not null,
  is_attributed boolean not null,
  owner smallint,
  seen smallint not null,
  last_sent_at timestamptz
) partition by range (hour);
create index application_hours_site_hour on application_hours (site_id, hour);
create index application_hours_name on application_hours (site_id, name, hour);

-- Bytes of a name in a minute, without addresses; the row without a name is the sum of all.
create table application_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text,
  bytes numeric not null
) partition by range (minute);
create index application_minutes_name on application_minutes (site_id, name, minute);
create index application_minutes_site_minute on application_minutes (site_id, minute);

-- Exact pairs by hour, for their 24 hours.
create table pair_hours (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  client inet not null,
  server inet not null,
  local inet not null,
  device_key text,
  bytes numeric
) partition by range (hour);
create index pair_hours_site_hour on pair_hours (site_id, hour);
create index pair_hours_name on pair_hours (site_id, name, hour);

create table site_hours (
  site_id bigint not null references sites,
  hour timestamptz not null,
  rx_bytes numeric not null,
  tx_bytes numeric not null,
  packets numeric not null,
  addresses integer not null,
  minutes integer not null,
  primary key (site_id, hour)
);
create index site_hours_hour on site_hours (hour);
