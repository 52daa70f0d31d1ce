-- The counts of an address hold while none of its evidence has expired. Evidence that had expired when it was counted first was left to
-- the retention; until that came by, the findings of one CVE were counted with it.
delete from finding_services where observed_at <= svc_now() - interval '7 days';
