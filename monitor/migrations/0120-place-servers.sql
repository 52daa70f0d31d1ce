-- On which node a server had which interface and address, and when. `address` is null in the row of the interface
-- itself. A server that moved may have been on either node between the listing that last named the old one and the one
-- that first named the new: the times of both rows overlap by that much. Ended rows are kept as long as minutes are.
create table vm_placements (
  id bigint generated always as identity primary key,
  cluster_id bigint not null,
  vm_id bigint not null,
  -- Null where operations did not say.
  node text,
  mac text not null,
  -- As sensors write it: the bridge, or `bridge.vlan`; blank where operations did not say.
  segment text not null,
  address inet,
  -- False: the address means something inside its segment only.
  is_unique boolean not null,
  began_at timestamptz not null,
  ended_at timestamptz
);
create index vm_placements_open on vm_placements (cluster_id, vm_id) where ended_at is null;
create index vm_placements_address on vm_placements (address);
create index vm_placements_mac on vm_placements (mac) where address is null;
create index vm_placements_node on vm_placements (node) where ended_at is null and address is null;
create index vm_placements_ended_at on vm_placements (ended_at);

-- When the listing that was imported last began: what it says was true then.
alter table inventory_state add column listed_at timestamptz;
update inventory_state set listed_at = last_success_at;

-- What is known now was so as far as is known.
insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
  select distinct v.cluster_id, v.vm_id, v.node, i.mac, coalesce(i.bridge || coalesce('.' || nullif(i.vlan, 0), ''), ''), a.address,
    not coalesce(a.address <<= any (array['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16',
      '172.16.0.0/12', '192.0.0.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4',
      '::/8', 'fc00::/6', 'ff00::/8']::inet[]), false), timestamptz '-infinity'
  from inventory_vms v join inventory_interfaces i using (cluster_id, vm_id)
  cross join lateral (select null::inet as address union all select unnest(i.addresses)) a
  where v.retired_at is null and i.retired_at is null;

-- The node a sensor speaks for. A token decides it; sensors of before keep the node that they enrolled with. Without a
-- cluster the name alone counts, in every cluster of the site.
alter table enrolment_tokens add column node text, add column cluster_id bigint;
-- `is_node_bound`: an operator chose the node, and the sensor did not name it itself.
alter table sensors add column cluster_id bigint, add column is_node_bound boolean not null default false;

-- Who may speak for an address: its servers' places, each with whether it is this sensor's node. An address that means
-- something inside its segment only belongs to servers of the sensor's site.
create function address_placements(of_sensor bigint, of_address inet)
returns table (segment text, began_at timestamptz, ended_at timestamptz, is_open boolean, speaks boolean)
language sql stable as $$
  select p.segment, p.began_at, coalesce(p.ended_at, 'infinity'), p.ended_at is null,
    coalesce(c.site_id = s.site_id and (p.node is null or p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)), false)
  from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id left join sensors s on s.id = of_sensor
  where p.address = of_address and (p.is_unique or c.site_id = s.site_id)
$$;

-- The same of a MAC.
create function mac_placements(of_sensor bigint, of_mac text)
returns table (began_at timestamptz, ended_at timestamptz, speaks boolean)
language sql stable as $$
  select p.began_at, coalesce(p.ended_at, 'infinity'),
    coalesce(c.site_id = s.site_id and (p.node is null or p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)), false)
  from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id left join sensors s on s.id = of_sensor
  where p.mac = of_mac and p.address is null
$$;

-- What a capture told of an address that a server of another node had in that minute. Kept and shown, never counted.
alter table host_minutes add column is_foreign boolean not null default false;
create index host_minutes_foreign on host_minutes (site_id, minute) where is_foreign;
alter table application_facts add column is_foreign boolean not null default false;
alter table endpoint_pairs add column is_foreign boolean not null default false;

-- The rules of 0095 and 0070 over what may be counted.
create or replace function strongest_host_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, capture_id bigint, rx_bytes bigint, tx_bytes bigint, packets bigint,
  device_key text, observed_ms integer, coverage float8, merged_frames bigint)
language sql stable as $$
  select distinct on (h.address, h.minute)
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
    m.merged_frames
  from (select address, minute, capture_id, least(sum(rx_bytes), 9007199254740991)::bigint as rx_bytes,
      least(sum(tx_bytes), 9007199254740991)::bigint as tx_bytes, least(sum(packets), 9007199254740991)::bigint as packets,
      nullif(min(device_key), '') as device_key, min(device_key) <> max(device_key) as is_disputed
    from host_minutes
    where site_id = of_site and minute >= from_minute and minute < to_minute and not is_foreign
    group by address, minute, capture_id) h
  join capture_minutes m on m.site_id = of_site and m.minute = h.minute and m.capture_id = h.capture_id
    and m.minute >= from_minute and m.minute < to_minute
  join captures c on c.id = h.capture_id
  window captures_of_minute as (partition by h.address, h.minute)
  order by h.address, h.minute,
    h.rx_bytes + h.tx_bytes desc, m.observed_ms desc, m.vantage, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;

create or replace function strongest_lan_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
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
      where site_id = of_site and minute >= from_minute and minute < to_minute and not is_foreign
      group by address, minute, capture_id
      having sum(lan_rx_bytes) + sum(lan_tx_bytes) > 0) sums
    join capture_minutes m on m.site_id = of_site and m.minute = sums.minute and m.capture_id = sums.capture_id
      and m.minute >= from_minute and m.minute < to_minute) h
  join captures c on c.id = h.capture_id
  where h.vantage = h.owner
  order by h.address, h.minute, h.rx_bytes + h.tx_bytes desc, h.observed_ms desc, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;
