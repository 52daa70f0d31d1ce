-- An ISO goes into the CD drive of a server, which starts from it before its disk.
alter table images drop constraint images_kind_check;
alter table images add constraint images_kind_check check (kind in ('system', 'rescue', 'iso'));
alter table servers add column iso_id bigint references images (id);
create index servers_iso_id on servers (iso_id) where iso_id is not null;

-- What the simulated hypervisor keeps of it.
alter table simulated_guests
  add column iso_change bigint not null default 0,
  add column iso text;
