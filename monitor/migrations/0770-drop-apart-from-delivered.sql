-- What the filter at an uplink dropped of an address, on that uplink's row and in none of its counters; null for nothing. Rows of before, and
-- those of older sensors, have none.
alter table host_minutes add column dropped_rx_bytes bigint, add column dropped_tx_bytes bigint,
  add column dropped_rx_packets bigint, add column dropped_tx_packets bigint;

-- Counters are of what was delivered: a capture of another host counted what is dropped on the way in, a bridge what the uplinks of its own
-- host drop on the way out. Captures are compared by what they counted.
drop function strongest_host_minutes;
create function strongest_host_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, capture_id bigint, rx_bytes bigint, tx_bytes bigint, packets bigint,
  device_key text, observed_ms integer, coverage float8, merged_frames bigint, segment text,
  own_scan_rx_bytes bigint, own_scan_tx_bytes bigint, own_scan_packets bigint,
  dropped_rx_bytes bigint, dropped_tx_bytes bigint, dropped_rx_packets bigint, dropped_tx_packets bigint,
  dropped_counted_bytes bigint, dropped_counted_packets bigint)
language sql stable as $$
  select distinct on (w.address, w.minute, w.segment)
    w.address, w.minute, w.capture_id,
    w.rx_bytes - least(w.counted_rx_bytes, w.rx_bytes - w.own_scan_rx_bytes),
    w.tx_bytes - least(w.counted_tx_bytes, w.tx_bytes - w.own_scan_tx_bytes),
    w.packets - least(w.counted_packets, w.packets - w.own_scan_packets),
    w.device_key, w.observed_ms, w.coverage, w.merged_frames, w.segment,
    w.own_scan_rx_bytes, w.own_scan_tx_bytes, w.own_scan_packets,
    w.dropped_rx_bytes, w.dropped_tx_bytes, w.dropped_rx_packets, w.dropped_tx_packets,
    least(w.counted_rx_bytes, w.rx_bytes - w.own_scan_rx_bytes) + least(w.counted_tx_bytes, w.tx_bytes - w.own_scan_tx_bytes),
    least(w.counted_packets, w.packets - w.own_scan_packets)
  from (select h.address, h.minute, h.segment, h.capture_id, h.rx_bytes, h.tx_bytes, h.packets,
      case when not bool_or(h.is_disputed) over captures_of_minute
          and min(h.device_key) over captures_of_minute = max(h.device_key) over captures_of_minute
        then min(h.device_key) over captures_of_minute else '' end as device_key,
      m.observed_ms, m.vantage, c.sensor_id, c.name,
      case
        when m.parser_dropped > 0 then null
        when h.rx_bytes < max(h.rx_bytes) over captures_of_minute or h.tx_bytes < max(h.tx_bytes) over captures_of_minute then null
        else m.observed_ms / 60000.0::float8 * coalesce(m.packets::float8 / nullif(m.packets + m.kernel_dropped, 0), 1)
      end as coverage,
      m.merged_frames, h.own_scan_rx_bytes, h.own_scan_tx_bytes, h.own_scan_packets,
      coalesce(sum(h.dropped_rx_bytes) over captures_of_minute, 0)::bigint as dropped_rx_bytes,
      coalesce(sum(h.dropped_tx_bytes) over captures_of_minute, 0)::bigint as dropped_tx_bytes,
      coalesce(sum(h.dropped_rx_packets) over captures_of_minute, 0)::bigint as dropped_rx_packets,
      coalesce(sum(h.dropped_tx_packets) over captures_of_minute, 0)::bigint as dropped_tx_packets,
      (coalesce(sum(h.dropped_rx_bytes) over captures_of_minute, 0)
        - coalesce(sum(h.dropped_rx_bytes) over captures_of_sensor, 0))::bigint as counted_rx_bytes,
      case when m.vantage = 2 then coalesce(sum(h.dropped_tx_bytes) over captures_of_sensor, 0) else 0 end::bigint as counted_tx_bytes,
      (coalesce(sum(h.dropped_rx_packets) over captures_of_minute, 0)
        - coalesce(sum(h.dropped_rx_packets) over captures_of_sensor, 0)
        + case when m.vantage = 2 then coalesce(sum(h.dropped_tx_packets) over captures_of_sensor, 0) else 0 end)::bigint
        as counted_packets
    from (select s.*, coalesce(nullif(s.own, ''), d.first, '') as segment
    from (select address, minute, capture_id, max(segment collate "C") as own, least(sum(rx_bytes), 9007199254740991)::bigint as rx_bytes,
        least(sum(tx_bytes), 9007199254740991)::bigint as tx_bytes, least(sum(packets), 9007199254740991)::bigint as packets,
        least(sum(own_scan_rx_bytes), 9007199254740991)::bigint as own_scan_rx_bytes,
        least(sum(own_scan_tx_bytes), 9007199254740991)::bigint as own_scan_tx_bytes,
        least(sum(own_scan_packets), 9007199254740991)::bigint as own_scan_packets,
        sum(dropped_rx_bytes) as dropped_rx_bytes, sum(dropped_tx_bytes) as dropped_tx_bytes,
        sum(dropped_rx_packets) as dropped_rx_packets, sum(dropped_tx_packets) as dropped_tx_packets,
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
    window captures_of_minute as (partition by h.address, h.minute, h.segment),
      captures_of_sensor as (partition by h.address, h.minute, h.segment order by c.sensor_id
        range between current row and current row)) w
  order by w.address, w.minute, w.segment,
    w.rx_bytes + w.tx_bytes desc, w.observed_ms desc, w.vantage, w.rx_bytes desc, w.sensor_id, w.name collate "C"
$$;
