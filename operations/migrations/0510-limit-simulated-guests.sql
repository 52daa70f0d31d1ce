-- The speed limit of a simulated guest's public interface.
alter table simulated_guests add column speed_mbit integer check (speed_mbit > 0);
