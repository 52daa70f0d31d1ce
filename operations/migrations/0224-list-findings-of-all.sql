-- Lists of all customers' findings in the order of their pages, of one severity, and of one CVE; and counts that read no records.
create index findings_worst on findings
  ((not is_known_exploited), (- coalesce(score, -1)), cve_id, allocation_id, transport, port) where not is_upstream;
create index findings_of_severity on findings
  ((coalesce(severity, 'unrated')), (not is_known_exploited), (- coalesce(score, -1)), cve_id, allocation_id, transport, port)
  where not is_upstream;
create index findings_cve_id on findings (cve_id) where not is_upstream;
create index findings_counted on findings (severity, is_known_exploited) where not is_upstream;
