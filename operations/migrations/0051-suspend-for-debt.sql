-- Why a tenant is suspended: what billing maintenance suspended for debt it may also take back, what an operator
-- suspended stays so.
alter table tenants add column suspended_for text check (suspended_for in ('debt', 'operator'));
update tenants set suspended_for = 'operator' where status = 'SUSPENDED';
alter table tenants add constraint tenants_suspended_for check ((status = 'SUSPENDED') = (suspended_for is not null));
-- The two lists that every tick of billing maintenance reads.
create index credit_balances_debt on credit_balances (tenant_id) where balance_quanta < 0;
create index tenants_suspended_for_debt on tenants (id) where suspended_for = 'debt';
