-- What the sensor's own port scans caused of an address's counters: a part of them, so every sum stays as it is. Rows of before, and
-- those of older sensors, have none.
alter table host_minutes add column own_scan_rx_bytes bigint not null default 0,
  add column own_scan_tx_bytes bigint not null default 0, add column own_scan_packets bigint not null default 0;
-- Sums need both directions together.
alter table site_minutes add column own_scan_bytes bigint not null default 0, add column own_scan_packets bigint not null default 0;
alter table site_hours add column own_scan_bytes bigint not null default 0, add column own_scan_packets bigint not null default 0;
alter table address_tens add column own_scan_bytes bigint not null default 0, add column own_scan_packets bigint not null default 0;
alter table address_hours add column own_scan_bytes bigint not null default 0, add column own_scan_packets bigint not null default 0;

-- The part is that of the capture which counts.
drop function strongest_host_minutes;
create function strongest_host_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, capture_id bigint, rx_bytes bigint, tx_bytes bigint, packets bigint,
  device_key text, observed_ms integer, coverage float8, merged_frames bigint, segment text,
  own_scan_rx_bytes bigint, own_scan_tx_bytes bigint, own_scan_packets bigint)
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
    m.merged_frames, h.segment, h.own_scan_rx_bytes, h.own_scan_tx_bytes, h.own_scan_packets
  from (select s.*, coalesce(nullif(s.own, ''), d.first, '') as segment
  from (select address, minute, capture_id, max(segment collate "C") as own, least(sum(rx_bytes), 9007199254740991)::bigint as rx_bytes,
      least(sum(tx_bytes), 9007199254740991)::bigint as tx_bytes, least(sum(packets), 9007199254740991)::bigint as packets,
      least(sum(own_scan_rx_bytes), 9007199254740991)::bigint as own_scan_rx_bytes,
      least(sum(own_scan_tx_bytes), 9007199254740991)::bigint as own_scan_tx_bytes,
      least(sum(own_scan_packets), 9007199254740991)::bigint as own_scan_packets,
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
