-- Of a package that its distribution calls affected: {"fixed_in": the first version of the package with the fix, or null}.
alter table findings add column package jsonb;
