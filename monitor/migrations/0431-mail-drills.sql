-- Whether the customer of a drill's address is mailed about it, as about an attack.
alter table protection_drills add column mails_customer boolean not null default false;
