-- The rule of NET-2.4.2 as a function of a site and a range instead of a view: a view's range reaches the hosts' table
-- but not the captures' beside it, whose every partition would then be read. The body is inlined into the query that
-- calls it, so a condition on the address reaches the key as well.
drop view strongest_host_minutes;
create function strongest_host_minutes(of_site bigint, from_minute timestamptz, to_minute timestamptz)
returns table (address inet, minute timestamptz, capture_id bigint, rx_bytes bigint, tx_bytes bigint, packets bigint,
  device_key text, observed_ms integer, coverage float8)
language sql stable as $$
  select distinct on (h.address, h.minute)
    h.address, h.minute, h.capture_id, h.rx_bytes, h.tx_bytes, h.packets, h.device_key, m.observed_ms,
    case
      when m.parser_dropped > 0 then null
      when h.rx_bytes < max(h.rx_bytes) over captures_of_minute or h.tx_bytes < max(h.tx_bytes) over captures_of_minute then null
      else m.observed_ms / 60000.0::float8 * coalesce(m.packets::float8 / nullif(m.packets + m.kernel_dropped, 0), 1)
    end
  from host_minutes h
  join capture_minutes m on m.site_id = h.site_id and m.minute = h.minute and m.capture_id = h.capture_id
  join captures c on c.id = h.capture_id
  where h.site_id = of_site and h.minute >= from_minute and h.minute < to_minute
    and m.site_id = of_site and m.minute >= from_minute and m.minute < to_minute
  window captures_of_minute as (partition by h.address, h.minute)
  order by h.address, h.minute,
    h.rx_bytes + h.tx_bytes desc, m.observed_ms desc, (c.role = 'uplink') desc, h.capture_id
$$;
