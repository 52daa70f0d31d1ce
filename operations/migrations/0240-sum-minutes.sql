-- Sums of an allocation's minutes, kept by the transaction that stores the minutes, so that they always say the same.
-- Observed minutes are bits, the first minute the lowest: how many minutes several addresses were observed in together
-- is the number of bits of all of them, which a count could not tell.
create table protect_usage_tens (
  allocation_id bigint not null references protect_series (allocation_id),
  at timestamptz not null check (extract(epoch from at)::bigint % 600 = 0),
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  inbound_minutes bigint not null,
  outbound_minutes bigint not null,
  primary key (allocation_id, at)
) with (fillfactor = 70);
create index protect_usage_tens_at on protect_usage_tens using brin (at) with (pages_per_range = 16, autosummarize = on);

create table protect_usage_hours (
  allocation_id bigint not null references protect_series (allocation_id),
  at timestamptz not null check (extract(epoch from at)::bigint % 3600 = 0),
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  inbound_minutes bigint not null,
  outbound_minutes bigint not null,
  primary key (allocation_id, at)
) with (fillfactor = 70);
create index protect_usage_hours_at on protect_usage_hours using brin (at) with (pages_per_range = 16, autosummarize = on);

-- Applications of an hour; kept a little longer than they are shown.
create table protect_application_hours (
  allocation_id bigint not null references protect_series (allocation_id),
  at timestamptz not null check (extract(epoch from at)::bigint % 3600 = 0),
  name text not null,
  transport text,
  server_port integer,
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  -- The last minute in which the address itself sent; null where it sent nothing.
  last_sent_at timestamptz
) with (fillfactor = 80);
create unique index protect_application_hours_identity
  on protect_application_hours (allocation_id, at, name, transport, server_port) nulls not distinct;
create index protect_application_hours_at on protect_application_hours using brin (at) with (pages_per_range = 16, autosummarize = on);

insert into protect_usage_tens
select allocation_id, date_bin('10 minutes', minute, 'epoch'), coalesce(sum(inbound_bytes), 0), coalesce(sum(outbound_bytes), 0),
  bit_or(case when inbound_bps is null then 0::bigint else 1::bigint << (extract(epoch from minute)::bigint / 60 % 10)::int end),
  bit_or(case when outbound_bps is null then 0::bigint else 1::bigint << (extract(epoch from minute)::bigint / 60 % 10)::int end)
from protect_minutes where inbound_bps is not null or outbound_bps is not null
group by 1, 2 order by 2, 1;

insert into protect_usage_hours
select allocation_id, date_bin('1 hour', at, 'epoch'), sum(inbound_bytes), sum(outbound_bytes),
  bit_or(inbound_minutes << (extract(epoch from at)::bigint / 600 % 6 * 10)::int),
  bit_or(outbound_minutes << (extract(epoch from at)::bigint / 600 % 6 * 10)::int)
from protect_usage_tens group by 1, 2 order by 2, 1;

insert into protect_application_hours
select allocation_id, date_bin('1 hour', minute, 'epoch'), name, transport, server_port,
  sum(seen.inbound_bytes), sum(seen.outbound_bytes), max(minute) filter (where seen.outbound_bytes > 0)
from protect_minutes, jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
  inbound_bytes bigint, outbound_bytes bigint)
where minute >= svc_now() - interval '2 days'
group by 1, 2, 3, 4, 5 order by 2, 1;
