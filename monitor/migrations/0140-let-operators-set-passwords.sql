-- No password has been set yet: another operator added the person, who has not used their link.
alter table operators alter column password_hash drop not null;
