-- Packets of sums, of both directions together: a minute says no more (NET-2.4.2), and may not say it at all, so that the
-- minutes that do are bits of their own. Null is unknown: the sum was written before packets were counted. Columns without a
-- value rewrite no row.
alter table protect_usage_tens add column packets bigint, add column packet_minutes bigint;
alter table protect_usage_hours add column packets bigint, add column packet_minutes bigint;
