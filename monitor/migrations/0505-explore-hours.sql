-- What hours hold for queries over any dimensions: packets by application, and of pairs both directions and the segment.
-- Hours that were made before have none of it: `has_detail` says which have, and the others are read from minutes.
alter table application_hours add column packets numeric;
alter table pair_hours add column segment text not null default '', add column inbound_bytes numeric,
  add column outbound_bytes numeric, add column packets numeric;
alter table rolled_hours add column has_detail boolean not null default false;
