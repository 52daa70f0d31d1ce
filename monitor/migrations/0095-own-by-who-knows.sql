-- Who owned an address in a minute is what the captures say that know it: an uplink often sees its router's MAC alone, and
-- says nothing then. Captures that disagree make it nobody's, and so does one whose own contributions disagreed
-- (NET-2.2.9). The bytes are still those of the one strongest capture.
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
    where site_id = of_site and minute >= from_minute and minute < to_minute
    group by address, minute, capture_id) h
  join capture_minutes m on m.site_id = of_site and m.minute = h.minute and m.capture_id = h.capture_id
    and m.minute >= from_minute and m.minute < to_minute
  join captures c on c.id = h.capture_id
  window captures_of_minute as (partition by h.address, h.minute)
  order by h.address, h.minute,
    h.rx_bytes + h.tx_bytes desc, m.observed_ms desc, m.vantage, h.rx_bytes desc, c.sensor_id, c.name collate "C"
$$;

-- Hours that were rolled up by the old rule.
update rolled_hours set is_dirty = true;
