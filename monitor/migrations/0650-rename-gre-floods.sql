-- What was called a GRE flood is a flood of an IP protocol now, whose number its vectors name.
update incidents set class = replace(class, 'gre_flood', 'protocol_flood'),
  measured = replace(measured::text, '"class": "gre_flood"', '"class": "protocol_flood"')::jsonb
  where class = 'gre_flood' or measured::text like '%"gre_flood"%';
update incident_observations set said = replace(said::text, '"class": "gre_flood"', '"class": "protocol_flood"')::jsonb
  where said::text like '%"gre_flood"%';
update site_correlations set classes = array_replace(classes, 'gre_flood', 'protocol_flood') where 'gre_flood' = any(classes);
update protection_drills set class = 'protocol_flood' where class = 'gre_flood';
-- Filters that are announced stay the same: those of GRE.
update hand_off_actions
  set attack = replace(attack::text, '"class": "gre_flood"', '"class": "protocol_flood", "protocols": [47]')::jsonb - 'protocols'
  where attack::text like '%"gre_flood"%';
