-- What a simulated site shows was made up and never observed: its pages say so, whatever its name.
alter table sites add column is_simulated boolean not null default false;
