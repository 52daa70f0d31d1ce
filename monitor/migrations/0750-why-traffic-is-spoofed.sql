-- What is spoofed: the source address, or what ARP and the like say of others. A server may also claim what is no server's.
alter table spoofed_traffic add reason text not null default 'address';
alter table spoofed_traffic drop constraint spoofed_traffic_sensor_id_hour_capture_segment_mac_address_key;
alter table spoofed_traffic add constraint spoofed_traffic_key
  unique nulls not distinct (sensor_id, hour, capture, segment, mac, address, reason);
