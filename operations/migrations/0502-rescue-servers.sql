-- A rescue image starts a server in place of its disk; servers are not made from it.
alter table images add column kind text not null default 'system' check (kind in ('system', 'rescue'));
-- True while a server starts from a rescue disk.
alter table servers add column is_rescued boolean not null default false;

-- What the simulated hypervisor keeps of it: the number of the last rescue or its end, and what the guest starts from.
alter table simulated_guests
  add column rescue_change bigint not null default 0,
  add column rescue_image text,
  add column rescue_password_digest text;
