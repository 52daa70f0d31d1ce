-- What a simulated site shows was made up and never observed: its pages say so under any name.
alter table sites add column is_simulated boolean not null default false;
