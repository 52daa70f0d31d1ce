-- The highest price of the hour that ends with billed_until; null for hours of before.
alter table servers add column billed_quanta bigint;
