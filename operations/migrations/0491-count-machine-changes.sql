-- Rises with each new disk and root password of a server: what a rebuild with the same image, a restore and a new password change is in
-- no other column, and a caller that names what it has seen is told of it.
alter table servers add column machine_version bigint not null default 0;
