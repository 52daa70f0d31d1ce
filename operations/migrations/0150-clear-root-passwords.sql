-- A root password is kept until its server has been ready for a day, and for no order that will never be carried out.
alter table server_orders alter column root_password drop not null;
create index server_orders_root_password on server_orders (id) where root_password is not null;
