-- What was called a GRE flood is a flood of an IP protocol now, whose number its vectors name.
update protect_incidents set class = replace(class, 'gre_flood', 'protocol_flood'),
  vectors = replace(vectors::text, '"class": "gre_flood"', '"class": "protocol_flood"')::jsonb
  where class = 'gre_flood' or vectors::text like '%"gre_flood"%';
update protect_incident_refusals set class = 'protocol_flood' where class = 'gre_flood';
