-- Rows of a demo installation at commit 0e74edc (2026-11-22), for upgrade.test.ts.

insert into address_pools (id, cluster_id, prefix, gateway, first_address, last_address) overriding system value values
  ('1', '1', '203.0.113.0/24', '203.0.113.1/32', '203.0.113.10/32', '203.0.113.250/32'),
  ('2', '1', '2001:db8:113::/64', '2001:db8:113::1/128', '2001:db8:113::10/128', '2001:db8:113::ffff/128');

insert into admin_projects (id, name, permissions, cluster_ids, created_at) overriding system value values
  ('1', 'Demo monitor', '{vm_inventory_read,protect_telemetry_ingest}', NULL, '2026-11-22 22:32:45.335686+00');

insert into admin_tokens (id, project_id, digest, created_by, created_at, expires_at, revoked_at, last_used_at) overriding system value values
  ('m6rddblviy7keys7', '1', E'\\x50adcd073f1b6e936bd30f83873f0767a91c1151fc30238fdcbfd49686e435d2', NULL, '2026-11-22 22:32:45.345015+00', NULL, NULL, '2026-11-22 22:36:59.627908+00');

insert into allocations (id, pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, reverse_dns, is_primary, assigned_at, released_at) overriding system value values
  ('1', '1', '1', '1', '1', '203.0.113.10/32', '24', '203.0.113.1/32', NULL, 'true', '2026-11-22 22:32:45.397562+00', NULL),
  ('2', '2', '1', '1', '1', '2001:db8:113::10/128', '64', '2001:db8:113::1/128', NULL, 'false', '2026-11-22 22:32:45.397562+00', NULL),
  ('3', '1', '1', '1', '2', '203.0.113.11/32', '24', '203.0.113.1/32', NULL, 'true', '2026-11-22 22:34:06.765945+00', NULL),
  ('4', '2', '1', '1', '2', '2001:db8:113::11/128', '64', '2001:db8:113::1/128', NULL, 'false', '2026-11-22 22:34:06.765945+00', NULL);

insert into api_keys (key_id, digest, name, scope, organization_id, person_id, tenant_access, created_at, expires_at, revoked_at, last_used_at) overriding system value values
  ('0rk7r5ms9r5e5egb', E'\\x8faa5af86006336bc1debbd0372275335caf66683cf6c3f4a3ce6095b560baa5', 'Demo read', 'read', '1', '1', 'all', '2026-11-22 22:32:45.306351+00', NULL, NULL, NULL),
  ('6ge8bw8zevidjxfy', E'\\xa434cfed64b3e1e897f3adfdce206b00dca8802a5f5ea062024dc1ad4ed0db79', 'Demo full', 'full', '2', '5', 'all', '2026-11-22 22:32:45.320786+00', NULL, NULL, NULL),
  ('g4kbu253a1jq1ogs', E'\\x8f95def78d4bdec66938609e0ef6422f5a22f1b97eb6ad0ab090d4acaadc0bbd', 'Demo full', 'full', '1', '1', 'all', '2026-11-22 22:32:45.226794+00', NULL, NULL, '2026-11-22 22:35:15.174528+00');

insert into bandwidth_days (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at) overriding system value values
  ('2', '2026-11-22', 'telemetry', '1', '132143', '88681', '2026-11-22 22:36:00+00'),
  ('1', '2026-11-22', 'telemetry', '1', '524293', '246348', '2026-11-22 22:36:00+00');

insert into billing_profiles (tenant_id, legal_name, email, country, created_at, updated_at) overriding system value values
  ('1', 'Acme Inc.', 'customer@demo.example', 'US', '2026-11-22 22:32:45.163173+00', '2026-11-22 22:32:45.163173+00'),
  ('2', 'Globex Inc.', 'other@demo.example', 'US', '2026-11-22 22:32:45.199723+00', '2026-11-22 22:32:45.199723+00');

insert into clusters (id, location_id, name, driver, created_at) overriding system value values
  ('1', '1', 'nyc1-a', 'simulated', '2026-11-22 22:32:44.432062+00');

insert into credit_balances (tenant_id, balance_quanta, updated_at, has_deposit) overriding system value values
  ('2', '1000000', '2026-11-22 22:32:45.205099+00', 'true'),
  ('1', '999851', '2026-11-22 22:34:44.59006+00', 'true');

insert into events (id, public_id, type, organization_id, tenant_id, data, occurred_at, dispatched_at) overriding system value values
  ('1', 'msg_43041b7b26b74bbea305c3e04534bfb6', 'key.created', '1', NULL, '{"href": "/api/v2/key", "key_id": "g4kbu253a1jq1ogs", "organization_id": 1}', '2026-11-22 22:32:45.226794+00', '2026-11-22 22:32:45.39413+00'),
  ('2', 'msg_6de3ee6cc99c4c8ca77b04660a55bed7', 'key.created', '1', NULL, '{"href": "/api/v2/key", "key_id": "0rk7r5ms9r5e5egb", "organization_id": 1}', '2026-11-22 22:32:45.306351+00', '2026-11-22 22:32:45.39413+00'),
  ('3', 'msg_d05c64a86cbc4452bfff7c36d6c2e293', 'key.created', '2', NULL, '{"href": "/api/v2/key", "key_id": "6ge8bw8zevidjxfy", "organization_id": 2}', '2026-11-22 22:32:45.320786+00', '2026-11-22 22:32:45.39413+00'),
  ('4', 'msg_32a9cc11c5954e8a8451130dea6d1327', 'server.created', '1', '1', '{"href": "/api/v2/servers/1?tenant=1", "server_id": 1, "tenant_id": 1}', '2026-11-22 22:32:45.397562+00', '2026-11-22 22:32:46.426339+00'),
  ('5', 'msg_aece99a961aa49aaa813ece6c6bc8eda', 'server.provisioned', '1', '1', '{"href": "/api/v2/servers/1?tenant=1", "server_id": 1, "tenant_id": 1}', '2026-11-22 22:32:46.552174+00', '2026-11-22 22:32:47.447429+00'),
  ('6', 'msg_71fa19fdb4a04ea09724036f2ad7dc0e', 'action.finished', '1', '1', '{"href": "/api/v2/servers/1/actions?tenant=1", "action_id": 1, "server_id": 1, "tenant_id": 1}', '2026-11-22 22:32:46.552174+00', '2026-11-22 22:32:47.447429+00'),
  ('7', 'msg_b18a5162fcd24c31ba20e34257f58b6f', 'server.created', '1', '1', '{"href": "/api/v2/servers/2?tenant=1", "server_id": 2, "tenant_id": 1}', '2026-11-22 22:34:06.765945+00', '2026-11-22 22:34:07.050003+00'),
  ('8', 'msg_010513e7ea674adab2b1785ca04a34b8', 'server.provisioned', '1', '1', '{"href": "/api/v2/servers/2?tenant=1", "server_id": 2, "tenant_id": 1}', '2026-11-22 22:34:08.029059+00', '2026-11-22 22:34:08.107165+00'),
  ('9', 'msg_70b7fbef48244030abdf074a81555f95', 'action.finished', '1', '1', '{"href": "/api/v2/servers/2/actions?tenant=1", "action_id": 2, "server_id": 2, "tenant_id": 1}', '2026-11-22 22:34:08.029059+00', '2026-11-22 22:34:08.107165+00'),
  ('10', 'msg_29cb6ff73eff4a8398275836e7793cf3', 'network.synced', '1', '1', '{"href": "/api/v2/networks/1?tenant=1", "tenant_id": 1, "network_id": 1}', '2026-11-22 22:35:40.51715+00', '2026-11-22 22:35:41.719679+00');

insert into images (id, slug, name, family, is_offered) overriding system value values
  ('1', 'debian-13', 'Debian 13', 'debian', 'true'),
  ('2', 'ubuntu-24.04', 'Ubuntu 24.04', 'ubuntu', 'true'),
  ('3', 'rocky-10', 'Rocky Linux 10', 'rocky', 'true');

insert into jobs (id, kind, payload, run_at, attempts, term, claimed_until, last_error, created_at, finished_at) overriding system value values
  ('1', 'servers.provision', '{"server_id": 1}', '2026-11-22 22:32:45.397562+00', '1', '1', NULL, NULL, '2026-11-22 22:32:45.397562+00', '2026-11-22 22:32:46.552174+00'),
  ('2', 'servers.provision', '{"server_id": 2}', '2026-11-22 22:34:06.765945+00', '1', '1', NULL, NULL, '2026-11-22 22:34:06.765945+00', '2026-11-22 22:34:08.029059+00'),
  ('4', 'networks.attach', '{"server_id": 2, "network_id": 1, "mac_address": "52:56:00:00:00:01", "attachment_id": 1}', '2026-11-22 22:35:39.575595+00', '1', '1', NULL, NULL, '2026-11-22 22:35:39.575595+00', '2026-11-22 22:35:40.367393+00'),
  ('3', 'networks.sync', '{"network_id": 1, "location_id": 1}', '2026-11-22 22:35:39.351872+00', '1', '1', NULL, NULL, '2026-11-22 22:35:39.351872+00', '2026-11-22 22:35:40.785796+00');

insert into ledger_entries (id, tenant_id, amount_quanta, description, metadata, created_at) overriding system value values
  ('1', '1', '1000000', 'Deposit of the demo world', '{"source": "deposit", "reference": "demo-world"}', '2026-11-22 22:32:45.17118+00'),
  ('2', '2', '1000000', 'Deposit of the demo world', '{"source": "deposit", "reference": "demo-world"}', '2026-11-22 22:32:45.205099+00'),
  ('3', '1', '-89', 'Server 1, hour from 2026-11-22T22:32:46.552Z', '{"source": "server_hours", "reference": "1:2026-11-22T22:32:46.552Z", "server_id": 1}', '2026-11-22 22:33:44.526574+00'),
  ('4', '1', '-60', 'Server 2, hour from 2026-11-22T22:34:08.029Z', '{"source": "server_hours", "reference": "2:2026-11-22T22:34:08.029Z", "server_id": 2}', '2026-11-22 22:34:44.59006+00');

insert into locations (id, slug, name, country) overriding system value values
  ('1', 'nyc1', 'New York 1', 'US');

insert into memberships (organization_id, person_id, role, created_at) overriding system value values
  ('1', '1', 'owner', '2026-11-22 22:32:45.140427+00'),
  ('2', '5', 'owner', '2026-11-22 22:32:45.186412+00'),
  ('1', '2', 'member', '2026-11-22 22:32:45.221869+00');

insert into network_attachments (id, network_id, server_id, ip, mac_address, state, error, requires_reboot, attached_at, created_at) overriding system value values
  ('1', '1', '2', '10.7.0.2/32', '52:56:00:00:00:01', 'attached', NULL, 'false', '2026-11-22 22:35:40.367393+00', '2026-11-22 22:35:39.575595+00');

insert into node_reservations (id, node_id, server_id, vcpus, memory_mb, disk_gb, reserved_at, released_at) overriding system value values
  ('1', '1', '1', '2', '4096', '80', '2026-11-22 22:32:45.397562+00', NULL),
  ('2', '1', '2', '1', '2048', '40', '2026-11-22 22:34:06.765945+00', NULL);

insert into nodes (id, cluster_id, name, uri, storage_pool, bridge, vcpus, memory_mb, disk_gb, is_open, seen_at, last_error, created_at) overriding system value values
  ('1', '1', 'simulated-1', NULL, NULL, 'br0', '64', '262144', '8192', 'true', '2026-11-22 22:37:15.002021+00', NULL, '2026-11-22 22:32:44.467596+00');

insert into organizations (id, name, created_at) overriding system value values
  ('1', 'Acme', '2026-11-22 22:32:45.140427+00'),
  ('2', 'Globex', '2026-11-22 22:32:45.186412+00');

insert into people (id, email, name, password_hash, staff_role, deactivated_at, created_at) overriding system value values
  ('1', 'customer@demo.example', 'Casey Customer', '$argon2id$v=19$m=19456,t=2,p=1$RYOpF/5n/Wtqew9jH7n8cg$/fCilzjEorJs3qtF3ojH3hh05GOYHpoXbkS7JVCwSOE', NULL, NULL, '2026-11-22 22:32:44.620415+00'),
  ('2', 'member@demo.example', 'Morgan Member', '$argon2id$v=19$m=19456,t=2,p=1$/jfZWp4ztkChi5gnlbhm8A$w7/NBWXstbCn3LjQd3/yOdYj45aazMr0ZAavuxi4kL4', NULL, NULL, '2026-11-22 22:32:44.712502+00'),
  ('3', 'operator@demo.example', 'Olive Operator', '$argon2id$v=19$m=19456,t=2,p=1$Hr8/L9FKzSptD1GySYy0Eg$zMKi+vP9q1Dr7TCAYwxmYXYKA9vaJSMOG10w7wIj8Bs', 'operator', NULL, '2026-11-22 22:32:44.84634+00'),
  ('4', 'support@demo.example', 'Sam Support', '$argon2id$v=19$m=19456,t=2,p=1$eBBrPLEqw11FP9nd56bvEA$gOi0vq4uOdlPIGUO+w85ITMZ1rf4KMRU0qn5O1JwV8g', 'support', NULL, '2026-11-22 22:32:44.989454+00'),
  ('5', 'other@demo.example', 'Oscar Other', '$argon2id$v=19$m=19456,t=2,p=1$hSGXdUD0XgaPFBbVbv6t6Q$f2xRUx2DBf8ReaAucux3zeh7SV7mJD9vm5b/59Uqm/0', NULL, NULL, '2026-11-22 22:32:45.125311+00');

insert into plans (id, slug, name, vcpus, memory_mb, disk_gb, hourly_quanta, monthly_cap_quanta, is_offered) overriding system value values
  ('1', 'kvm-1', 'KVM 1', '1', '2048', '40', '60', '40000', 'true'),
  ('2', 'kvm-2', 'KVM 2', '2', '4096', '80', '89', '60000', 'true'),
  ('3', 'kvm-4', 'KVM 4', '4', '8192', '160', '178', '120000', 'true');

insert into private_networks (id, tenant_id, location_id, name, description, cidr, labels, sync_state, sync_wanted, sync_error, last_synced_at, created_at, updated_at) overriding system value values
  ('1', '1', '1', 'lan', NULL, '10.7.0.0/24', '{}', 'synced', '1', NULL, '2026-11-22 22:35:40.51715+00', '2026-11-22 22:35:39.351872+00', '2026-11-22 22:35:39.351872+00');

insert into protect_minutes (allocation_id, minute, inbound_bytes, outbound_bytes, inbound_bps, outbound_bps, pps, expected_bps, expected_pps, ddos_bps, ddos_pps, coverage, applications, received_at) overriding system value values
  ('1', '2026-11-22 22:33:00+00', '88106', '42713', '11747.466666666667', '5695.066666666667', '4.133333333333334', NULL, NULL, NULL, NULL, '1', '[{"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 22231, "outbound_bytes": 15798}, {"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34144, "outbound_bytes": 2421}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 4744, "outbound_bytes": 20297}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 15562, "outbound_bytes": 2369}, {"name": "DNS", "transport": "tcp", "server_port": 53, "inbound_bytes": 7752, "outbound_bytes": 928}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 2957, "outbound_bytes": 390}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 640, "outbound_bytes": 434}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 76, "outbound_bytes": 76}]', '2026-11-22 22:34:03.732345+00'),
  ('2', '2026-11-22 22:33:00+00', '100421', '37825', '13389.466666666667', '5043.333333333333', '4.25', NULL, NULL, NULL, NULL, '1', '[{"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34704, "outbound_bytes": 2661}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 27646, "outbound_bytes": 5183}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 22098, "outbound_bytes": 5100}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 5316, "outbound_bytes": 20713}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4884, "outbound_bytes": 2444}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 3077, "outbound_bytes": 510}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1496, "outbound_bytes": 460}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 1104, "outbound_bytes": 658}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 96, "outbound_bytes": 96}]', '2026-11-22 22:34:03.797527+00'),
  ('1', '2026-11-22 22:34:00+00', '105163', '36565', '14021.733333333334', '4875.333333333333', '4.733333333333333', NULL, NULL, NULL, NULL, '1', '[{"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34157, "outbound_bytes": 2513}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 26904, "outbound_bytes": 4835}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 21682, "outbound_bytes": 9684}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 4680, "outbound_bytes": 14987}, {"name": "DNS", "transport": "tcp", "server_port": 53, "inbound_bytes": 7752, "outbound_bytes": 928}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4737, "outbound_bytes": 2328}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 2957, "outbound_bytes": 390}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1416, "outbound_bytes": 340}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 878, "outbound_bytes": 560}]', '2026-11-22 22:35:06.058169+00'),
  ('2', '2026-11-22 22:34:00+00', '100582', '40602', '13410.933333333332', '5413.6', '4.35', NULL, NULL, NULL, NULL, '1', '[{"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34704, "outbound_bytes": 2661}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 22459, "outbound_bytes": 12961}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 27636, "outbound_bytes": 5183}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 5124, "outbound_bytes": 15629}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4886, "outbound_bytes": 2444}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 3077, "outbound_bytes": 510}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1496, "outbound_bytes": 460}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 1104, "outbound_bytes": 658}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 96, "outbound_bytes": 96}]', '2026-11-22 22:35:06.151524+00'),
  ('3', '2026-11-22 22:35:00+00', '101725', '43571', '13563.333333333334', '5809.466666666666', '4.6', NULL, NULL, NULL, NULL, '1', '[{"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34143, "outbound_bytes": 2369}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 27046, "outbound_bytes": 4755}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 4985, "outbound_bytes": 25325}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 21579, "outbound_bytes": 7080}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4685, "outbound_bytes": 2264}, {"name": "DNS", "transport": "tcp", "server_port": 53, "inbound_bytes": 3876, "outbound_bytes": 464}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 2957, "outbound_bytes": 390}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1468, "outbound_bytes": 288}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 910, "outbound_bytes": 560}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 76, "outbound_bytes": 76}]', '2026-11-22 22:36:04.877379+00'),
  ('4', '2026-11-22 22:35:00+00', '30418', '45110', '4055.733333333333', '6014.666666666667', '2.8', NULL, NULL, NULL, NULL, '1', '[{"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 7771, "outbound_bytes": 32386}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 11613, "outbound_bytes": 2726}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4886, "outbound_bytes": 2444}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 729, "outbound_bytes": 6149}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 3077, "outbound_bytes": 510}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1568, "outbound_bytes": 388}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 678, "outbound_bytes": 411}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 96, "outbound_bytes": 96}]', '2026-11-22 22:36:04.996321+00'),
  ('1', '2026-11-22 22:35:00+00', '99611', '43447', '13281.466666666667', '5792.933333333333', '4.4', NULL, NULL, NULL, NULL, '1', '[{"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34144, "outbound_bytes": 2421}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 28197, "outbound_bytes": 4807}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 4769, "outbound_bytes": 25548}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 21630, "outbound_bytes": 7028}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4685, "outbound_bytes": 2264}, {"name": "DNS", "transport": "tcp", "server_port": 53, "inbound_bytes": 3876, "outbound_bytes": 464}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1416, "outbound_bytes": 340}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 818, "outbound_bytes": 499}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 76, "outbound_bytes": 76}]', '2026-11-22 22:36:05.122651+00'),
  ('2', '2026-11-22 22:35:00+00', '30410', '45196', '4054.6666666666665', '6026.133333333333', '2.816666666666667', NULL, NULL, NULL, NULL, '1', '[{"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 7777, "outbound_bytes": 32460}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 11745, "outbound_bytes": 2594}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4885, "outbound_bytes": 2444}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 656, "outbound_bytes": 6221}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 3005, "outbound_bytes": 582}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1568, "outbound_bytes": 388}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 678, "outbound_bytes": 411}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 96, "outbound_bytes": 96}]', '2026-11-22 22:36:05.258647+00'),
  ('3', '2026-11-22 22:36:00+00', '89854', '44666', '11980.533333333333', '5955.466666666666', '4.283333333333333', NULL, NULL, NULL, NULL, '1', '[{"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 22285, "outbound_bytes": 15746}, {"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34261, "outbound_bytes": 2473}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 4696, "outbound_bytes": 20284}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 15458, "outbound_bytes": 2461}, {"name": "DNS", "transport": "tcp", "server_port": 53, "inbound_bytes": 7752, "outbound_bytes": 928}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4686, "outbound_bytes": 2264}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 640, "outbound_bytes": 434}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 76, "outbound_bytes": 76}]', '2026-11-22 22:37:04.817357+00'),
  ('4', '2026-11-22 22:36:00+00', '101301', '49468', '13506.8', '6595.733333333334', '4.666666666666667', NULL, NULL, NULL, NULL, '1', '[{"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 23117, "outbound_bytes": 16538}, {"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34703, "outbound_bytes": 2661}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 27635, "outbound_bytes": 5183}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 5188, "outbound_bytes": 20918}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4885, "outbound_bytes": 2444}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 3077, "outbound_bytes": 510}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1496, "outbound_bytes": 460}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 1104, "outbound_bytes": 658}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 96, "outbound_bytes": 96}]', '2026-11-22 22:37:04.968763+00'),
  ('1', '2026-11-22 22:36:00+00', '88106', '42713', '11747.466666666667', '5695.066666666667', '4.133333333333334', NULL, NULL, NULL, NULL, '1', '[{"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 22231, "outbound_bytes": 15798}, {"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34144, "outbound_bytes": 2421}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 4744, "outbound_bytes": 20297}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 15562, "outbound_bytes": 2369}, {"name": "DNS", "transport": "tcp", "server_port": 53, "inbound_bytes": 7752, "outbound_bytes": 928}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 2957, "outbound_bytes": 390}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 640, "outbound_bytes": 434}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 76, "outbound_bytes": 76}]', '2026-11-22 22:37:05.160818+00'),
  ('2', '2026-11-22 22:36:00+00', '100421', '37825', '13389.466666666667', '5043.333333333333', '4.25', NULL, NULL, NULL, NULL, '1', '[{"name": "example.net", "transport": "tcp", "server_port": 443, "inbound_bytes": 34704, "outbound_bytes": 2661}, {"name": "example.com", "transport": "tcp", "server_port": 443, "inbound_bytes": 27646, "outbound_bytes": 5183}, {"name": "example.edu", "transport": "tcp", "server_port": 80, "inbound_bytes": 22098, "outbound_bytes": 5100}, {"name": "example.edu", "transport": "tcp", "server_port": 443, "inbound_bytes": 5316, "outbound_bytes": 20713}, {"name": "example.org", "transport": "tcp", "server_port": 443, "inbound_bytes": 4884, "outbound_bytes": 2444}, {"name": "example.com", "transport": "tcp", "server_port": 80, "inbound_bytes": 3077, "outbound_bytes": 510}, {"name": "example.net", "transport": "tcp", "server_port": 43, "inbound_bytes": 1496, "outbound_bytes": 460}, {"name": "DNS", "transport": "udp", "server_port": 53, "inbound_bytes": 1104, "outbound_bytes": 658}, {"name": "example.org", "transport": "udp", "server_port": 123, "inbound_bytes": 96, "outbound_bytes": 96}]', '2026-11-22 22:37:05.2171+00');

insert into protect_series (allocation_id, tenant_id, server_id, address, source_site_id, created_at) overriding system value values
  ('1', '1', '1', '203.0.113.10', '1', '2026-11-22 22:34:03.732345+00'),
  ('2', '1', '1', '2001:db8:113::10', '1', '2026-11-22 22:34:03.797527+00'),
  ('3', '1', '2', '203.0.113.11', '1', '2026-11-22 22:36:04.877379+00'),
  ('4', '1', '2', '2001:db8:113::11', '1', '2026-11-22 22:36:04.996321+00');

insert into server_actions (id, server_id, command, status, progress, changed, outcome, error, requested_by_key, requested_by_person_id, created_at, started_at, finished_at, timeout_seconds, on_timeout) overriding system value values
  ('1', '1', 'create', 'success', '100', 'true', NULL, NULL, NULL, '1', '2026-11-22 22:32:45.397562+00', '2026-11-22 22:32:45.498192+00', '2026-11-22 22:32:46.552174+00', '0', NULL),
  ('2', '2', 'create', 'success', '100', 'true', NULL, NULL, 'g4kbu253a1jq1ogs', '1', '2026-11-22 22:34:06.765945+00', '2026-11-22 22:34:06.828786+00', '2026-11-22 22:34:08.029059+00', '0', NULL);

insert into server_charges (server_id, month, charged_quanta) overriding system value values
  ('1', '2026-11-01', '89'),
  ('2', '2026-11-01', '60');

insert into server_interfaces (id, server_id, mac_address, bridge, vlan, released_at) overriding system value values
  ('1', '1', '52:54:00:5e:10:10', 'br0', NULL, NULL),
  ('2', '2', '52:54:00:5e:10:11', 'br0', NULL, NULL);

insert into server_orders (id, tenant_id, plan_id, state, billing_cycle, due_quanta, root_password, created_at, paid_at, request, queued_at, closed_reason, form_id) overriding system value values
  ('1', '1', '2', 'paid', 'hourly', '0', '2MaWbN6wnpxPhs2EYXJf', '2026-11-22 22:32:45.397562+00', '2026-11-22 22:32:45.397562+00', '{"input": {"name": "web-1", "plan": "kvm-2", "image": "debian-13", "tenantId": 1}, "requester": {"requestedByKey": null, "requestedByPersonId": 1}}', '2026-11-22 22:32:45.397562+00', NULL, NULL),
  ('2', '1', '1', 'paid', 'hourly', '0', 'H5vXxwmZuyBCVjtLp6Rb', '2026-11-22 22:34:06.765945+00', '2026-11-22 22:34:06.765945+00', '{"input": {"name": "hello", "plan": "kvm-1", "image": "debian-13", "tenantId": 1}, "requester": {"requestedByKey": "g4kbu253a1jq1ogs", "requestedByPersonId": 1}}', '2026-11-22 22:34:06.765945+00', NULL, NULL);

insert into servers (id, tenant_id, order_id, plan_id, image_id, cluster_id, node, name, hostname, labels, ssh_keys, user_data, provisioning_state, power_state, failure, hourly_quanta, monthly_cap_quanta, billed_until, created_at, provisioned_at, status_changed_at, updated_at, deleted_at, failure_detail, has_public_ip, deleting_at) overriding system value values
  ('1', '1', '1', '2', '1', '1', 'simulated-1', 'web-1', 'web-1', '{}', '[]', NULL, 'ready', 'running', NULL, '89', '60000', '2026-11-22 23:32:46.552174+00', '2026-11-22 22:32:45.397562+00', '2026-11-22 22:32:46.552174+00', '2026-11-22 22:32:46.552174+00', '2026-11-22 22:32:46.552174+00', NULL, NULL, 'true', NULL),
  ('2', '1', '2', '1', '1', '1', 'simulated-1', 'hello', 'hello', '{"env": "prod"}', '[]', NULL, 'ready', 'running', NULL, '60', '40000', '2026-11-22 23:34:08.029059+00', '2026-11-22 22:34:06.765945+00', '2026-11-22 22:34:08.029059+00', '2026-11-22 22:34:08.029059+00', '2026-11-22 22:35:39.873813+00', NULL, NULL, 'true', NULL);

insert into simulated_guests (name, mac_address, addresses, power, made_at, firewall) overriding system value values
  ('vm-1', '52:54:00:5e:10:10', '{203.0.113.10,2001:db8:113::10}', 'on', '2026-11-22 22:32:46.544191+00', NULL),
  ('vm-2', '52:54:00:5e:10:11', '{203.0.113.11,2001:db8:113::11}', 'on', '2026-11-22 22:34:08.008107+00', NULL);

insert into simulated_interfaces (guest, network_id, mac_address, address) overriding system value values
  ('vm-2', '1', '52:56:00:00:00:01', '10.7.0.2/32');

insert into tenants (id, organization_id, name, slug, status, currency, is_payer, created_at, suspended_for) overriding system value values
  ('1', '1', 'Acme Production', 'acme-production', 'ACTIVE', 'USD', 'true', '2026-11-22 22:32:45.140427+00', NULL),
  ('2', '2', 'Globex', 'globex', 'ACTIVE', 'USD', 'true', '2026-11-22 22:32:45.186412+00', NULL);

insert into usage_days (tenant_id, day, count) overriding system value values
  ('1', '2026-11-22', '7');

insert into usage_key_months (tenant_id, month, key_id, count) overriding system value values
  ('1', '2026-11-01', 'g4kbu253a1jq1ogs', '7');

insert into usage_months (tenant_id, month, count, included_count, overage_charged_count, told_percent) overriding system value values
  ('1', '2026-11-01', '7', NULL, '0', '0');
