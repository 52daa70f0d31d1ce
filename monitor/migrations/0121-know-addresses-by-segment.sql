-- An address that is not globally unique (private, shared, link-local, unique local …) is known by its segment and itself:
-- two networks may use it at once. `segment` is blank for unique addresses, and where no owner on a bridge was seen.
alter table host_minutes add column segment text not null default '';
create index host_minutes_segment on host_minutes (site_id, address, minute) where segment <> '';
alter table application_facts add column segment text not null default '';
alter table endpoint_pairs add column segment text not null default '';
alter table minute_owners add column segment text not null default '';
alter table address_hours add column segment text not null default '';
alter table application_hours add column segment text not null default '';

alter table ip_bindings add column segment text not null default '';
alter table ip_conflicts add column segment text not null default '';
create function is_local_address(address inet) returns boolean language sql immutable strict parallel safe as $$
  select address <<= any (array['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12',
    '192.0.0.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4', '::/8', 'fc00::/6',
    'ff00::/8']::inet[])
$$;
update ip_bindings b set segment = d.segment from devices d where d.id = b.device_id and is_local_address(b.address);
-- Conflicts of such addresses between segments were none. The next sightings open again what is one.
insert into events (kind, site_id, details)
  select 'ip_conflict_resolved', site_id,
    jsonb_build_object('address', host(address), 'mac_addresses', macs, 'reason', 'segments_told_apart')
  from ip_conflicts where resolved_at is null and is_local_address(address);
update ip_conflicts set resolved_at = svc_now() where resolved_at is null and is_local_address(address);
drop function is_local_address;
drop index ip_conflicts_open;
create unique index ip_conflicts_open on ip_conflicts (site_id, segment, address) where resolved_at is null;

-- With the place's segment, for addresses that are not unique.
drop function address_placements;
create function address_placements(of_sensor bigint, of_address inet)
returns table (segment text, began_at timestamptz, ended_at timestamptz, is_open boolean, is_unique boolean, speaks boolean)
language sql stable as $$
  select p.segment, p.began_at, coalesce(p.ended_at, 'infinity'), p.ended_at is null, p.is_unique,
    coalesce(c.site_id = s.site_id and (p.node is null or p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)), false)
  from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id left join sensors s on s.id = of_sensor
  where p.address = of_address and (p.is_unique or c.site_id = s.site_id)
$$;

-- Selection by segment as well. A row without one is of the only segment in which an owner was seen in its minute; where
-- there were several, nobody can tell whose it was, and it counts for none of them.
drop function strongest_host_minutes;
drop function strongest_lan_minutes;
create function strongest_host_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, capture_id bigint, rx_bytes bigint, tx_bytes bigint, packets bigint,
  device_key text, observed_ms integer, coverage float8, merged_frames bigint, segment text)
language sql stable as $$
  select distinct on (h.address, h.minute, h.segment)
    h.address, h.minute, h.capture_id, h.rx_bytes, h.tx_bytes, h.packets,
    case when not bool_or(h.is_disputed) over captures_of_minute
        and min(h.device_key) over captures_of_minute = max(h.device_key) over captures_of_minute
      then min(h.device_key) over captures_of_minute else '' end,
    m.observed_ms,
    case
      when m.parser_dropped > 0 then null
      when h.rx_bytes < max(h.rx_bytes) over captures_of_minute or h.tx_bytes < max(h.tx_bytes) over captures_of_minute then null
      else m.observed_ms / 60000.0::float8 * coalesce(m.packets::float8 / nullif(m.packets + m.kernel_dropped, 0), 1)
    end,
    m.merged_frames, h.segment
  from (select s.*, coalesce(nullif(s.own, ''), d.first, '') as segment
  from (select address, minute, capture_id, max(segment collate "C") as own, least(sum(rx_bytes), 9007199254740991)::bigint as rx_bytes,
      least(sum(tx_bytes), 9007199254740991)::bigint as tx_bytes, least(sum(packets), 9007199254740991)::bigint as packets,
      nullif(min(device_key), '') as device_key, min(device_key) <> max(device_key) as is_disputed
    from host_minutes
    where site_id = of_site and minute >= from_minute and minute < to_minute and not is_foreign
    group by address, minute, capture_id) s
    left join (select address, minute, min(segment collate "C") as first, max(segment collate "C") as last
    from host_minutes
    where site_id = of_site and minute >= from_minute and minute < to_minute and not is_foreign and segment <> ''
    group by address, minute) d on d.address = s.address and d.minute = s.minute
  where s.own <> '' or d.first is not distinct from d.last) h
  join capture_minutes m on m.site_id = of_site and m.minute = h.minute and m.capture_id = h.capture_id
    and m.minute >= from_minute and m.minute < to_minute
  join captures c on c.id = h.capture_id
  window captures_of_minute as (partition by h.address, h.minute, h.segment)
  order by h.address, h.minute, h.segment,
    h.rx_bytes + h.tx_bytes desc, m.observed_ms desc, m.vantage, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;

create function strongest_lan_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, rx_bytes bigint, tx_bytes bigint, device_key text, segment text)
language sql stable as $$
  select distinct on (h.address, h.minute, h.segment) h.address, h.minute, h.rx_bytes, h.tx_bytes, h.device_key, h.segment
  from (select sums.*, coalesce(nullif(sums.own, ''), d.first, '') as segment, m.vantage, m.observed_ms,
      -- The owning vantage is the largest number that saw internal bytes: 2 is the bridge.
      max(m.vantage) over (partition by sums.minute) as owner
    from (select address, minute, capture_id, max(segment collate "C") as own, least(sum(lan_rx_bytes), 9007199254740991)::bigint as rx_bytes,
        least(sum(lan_tx_bytes), 9007199254740991)::bigint as tx_bytes,
        case when min(device_key) = max(device_key) then min(device_key) else '' end as device_key
      from host_minutes
      where site_id = of_site and minute >= from_minute and minute < to_minute and not is_foreign
      group by address, minute, capture_id
      having sum(lan_rx_bytes) + sum(lan_tx_bytes) > 0) sums
    join capture_minutes m on m.site_id = of_site and m.minute = sums.minute and m.capture_id = sums.capture_id
      and m.minute >= from_minute and m.minute < to_minute
    left join (select address, minute, min(segment collate "C") as first, max(segment collate "C") as last
    from host_minutes
    where site_id = of_site and minute >= from_minute and minute < to_minute and not is_foreign and segment <> ''
    group by address, minute) d on d.address = sums.address and d.minute = sums.minute
    where sums.own <> '' or d.first is not distinct from d.last) h
  join captures c on c.id = h.capture_id
  where h.vantage = h.owner
  order by h.address, h.minute, h.segment, h.rx_bytes + h.tx_bytes desc, h.observed_ms desc, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;
