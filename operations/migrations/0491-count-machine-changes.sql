-- Rises with each new disk and root password of a server. A rebuild with the same image, a restore and a new password change no other
-- column, and the server's ETag has to change with them.
alter table servers add column machine_version bigint not null default 0;
