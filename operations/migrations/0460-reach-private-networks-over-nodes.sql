-- Private networks over the nodes of a location: a node names its bridges by a pattern, a network has a number in it.
alter table nodes add column network_bridges text;
alter table private_networks
  add column segment int,
  add constraint private_networks_segment unique (location_id, segment);
