-- What the public interface of a plan's servers sends and receives a second; null: as much as the node can.
alter table plans add column port_mbit integer check (port_mbit between 1 and 1000000);
