-- Facts arrive by COPY, which knows no conflict: rows are only ever appended, and several of one key add when they are
-- read. What is written out as text in every row becomes a small number:
-- direction 1 outbound, 2 inbound, 3 internal, 4 transit (it tells the scope as well); vantage 1 uplink, 2 bridge;
-- evidence by strength: 0 none, 1 dns, 2 tls_outer, 3 http_connect, 4 http_host, 5 tls_sni, 6 ip_protocol.
alter table application_facts
  drop constraint application_facts_vantage_check,
  drop constraint application_facts_scope_check,
  drop constraint application_facts_direction_check,
  drop column scope,
  alter column vantage type smallint using case vantage when 'uplink' then 1 else 2 end,
  alter column direction type smallint using array_position(array['outbound', 'inbound', 'internal', 'transit'], direction),
  alter column evidence type smallint using
    array_position(array['none', 'dns', 'tls_outer', 'http_connect', 'http_host', 'tls_sni', 'ip_protocol'], evidence) - 1;
alter table endpoint_pairs
  drop column scope,
  add column is_attributed boolean not null default true,
  alter column vantage type smallint using case vantage when 'uplink' then 1 else 2 end,
  alter column direction type smallint using array_position(array['outbound', 'inbound', 'internal', 'transit'], direction),
  alter column evidence type smallint using
    array_position(array['none', 'dns', 'tls_outer', 'http_connect', 'http_host', 'tls_sni', 'ip_protocol'], evidence) - 1;

-- Internal bytes of a local address, for devices' LAN values: `host_minutes` counts all that the address exchanged.
alter table host_minutes
  drop constraint host_minutes_pkey,
  add column lan_rx_bytes bigint not null default 0,
  add column lan_tx_bytes bigint not null default 0;
create index host_minutes_address on host_minutes (site_id, address, minute);

-- The role at that time: a capture that changes its role later does not change what was counted.
alter table capture_minutes add column vantage smallint not null default 1;
update capture_minutes m set vantage = 2 from captures c where c.id = m.capture_id and c.role = 'bridge';
alter table capture_minutes alter column vantage drop default;

-- The rule of NET-2.4.2 over appended rows: they add up by capture first. Conditions on the address reach the index
-- through the grouping. Ties are broken by what does not depend on the order of arrival.
drop function strongest_host_minutes(bigint, timestamptz, timestamptz);
create function strongest_host_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, capture_id bigint, rx_bytes bigint, tx_bytes bigint, packets bigint,
  device_key text, observed_ms integer, coverage float8, merged_frames bigint)
language sql stable as $$
  select distinct on (h.address, h.minute)
    h.address, h.minute, h.capture_id, h.rx_bytes, h.tx_bytes, h.packets, h.device_key, m.observed_ms,
    case
      when m.parser_dropped > 0 then null
      when h.rx_bytes < max(h.rx_bytes) over captures_of_minute or h.tx_bytes < max(h.tx_bytes) over captures_of_minute then null
      else m.observed_ms / 60000.0::float8 * coalesce(m.packets::float8 / nullif(m.packets + m.kernel_dropped, 0), 1)
    end,
    m.merged_frames
  from (select address, minute, capture_id, least(sum(rx_bytes), 9007199254740991)::bigint as rx_bytes,
      least(sum(tx_bytes), 9007199254740991)::bigint as tx_bytes, least(sum(packets), 9007199254740991)::bigint as packets,
      case when min(device_key) = max(device_key) then min(device_key) else '' end as device_key
    from host_minutes
    where site_id = of_site and minute >= from_minute and minute < to_minute
    group by address, minute, capture_id) h
  join capture_minutes m on m.site_id = of_site and m.minute = h.minute and m.capture_id = h.capture_id
    and m.minute >= from_minute and m.minute < to_minute
  join captures c on c.id = h.capture_id
  window captures_of_minute as (partition by h.address, h.minute)
  order by h.address, h.minute,
    h.rx_bytes + h.tx_bytes desc, m.observed_ms desc, m.vantage, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;

-- The same rule for internal traffic (NET-2.2.5): the bridges own a site's minute if they saw any of it, else the uplinks;
-- of an address the owner's strongest capture counts.
create function strongest_lan_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, rx_bytes bigint, tx_bytes bigint, device_key text)
language sql stable as $$
  select distinct on (h.address, h.minute) h.address, h.minute, h.rx_bytes, h.tx_bytes, h.device_key
  from (select sums.*, m.vantage, m.observed_ms,
      -- The owning vantage is the largest number that saw internal bytes: 2 is the bridge.
      max(m.vantage) over (partition by sums.minute) as owner
    from (select address, minute, capture_id, least(sum(lan_rx_bytes), 9007199254740991)::bigint as rx_bytes,
        least(sum(lan_tx_bytes), 9007199254740991)::bigint as tx_bytes,
        case when min(device_key) = max(device_key) then min(device_key) else '' end as device_key
      from host_minutes
      where site_id = of_site and minute >= from_minute and minute < to_minute
      group by address, minute, capture_id
      having sum(lan_rx_bytes) + sum(lan_tx_bytes) > 0) sums
    join capture_minutes m on m.site_id = of_site and m.minute = sums.minute and m.capture_id = sums.capture_id
      and m.minute >= from_minute and m.minute < to_minute) h
  join captures c on c.id = h.capture_id
  where h.vantage = h.owner
  order by h.address, h.minute, h.rx_bytes + h.tx_bytes desc, h.observed_ms desc, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;
