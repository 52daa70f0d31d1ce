-- A slug names a tenant among those that a key reaches, which are of one organization. Unique among all, it told who else has
-- the name.
create unique index tenants_organization_slug on tenants (organization_id, slug);
drop index tenants_slug;
