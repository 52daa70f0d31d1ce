/**
 * Both server programs, connected, at a time that stands still, with traffic of every kind and two customers. It is made
 * through the programs' own doors.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { mock } from 'node:test';
import { webhookEvents } from '#contracts/customer-api/index.ts';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import { copyRecords } from '#monitor/vulnerabilities/testing/assess-world.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password } from '#operations/testing/create-world.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { countIds, repeatChance } from './repeat-chance.ts';
import {
  createTraffic,
  enrol,
  hourMs,
  minuteMs,
  nowMs,
  scanServers,
  sendLive,
  sendSimulated,
} from './traffic.ts';

export const metricsToken = 'token-of-the-scraper-of-metrics';
const permissions = [
  ...['vm_inventory_read', 'protect_telemetry_ingest', 'protect_live_ingest', 'ddos_incident_ingest'],
  ...['protect_port_scan_ingest', 'protect_vulnerability_ingest'],
];

type Programs = Awaited<ReturnType<typeof startPrograms>>;
export type RecordedWorld = Awaited<ReturnType<typeof createRecordedWorld>>;

/** `folder` is an empty one. */
export async function createRecordedWorld(folder: string) {
  const programs = await startPrograms(folder);
  const customers = await seedCustomers(programs);
  const sites = await seedMonitor(programs);
  const { setTime, operations } = programs;
  const { monitor, database } = programs.monitor;
  await setTime(nowMs - 25 * hourMs);
  const sensor = await enrol(monitor, sites.siteId, 'simulated-1');
  const traffic = createTraffic(monitor, sensor, customers.addresses, sites);
  await runLoops(programs);
  for (const agoMs of [170 * minuteMs, 100 * minuteMs, 30_000]) {
    await setTime(nowMs - agoMs);
    await traffic.sendMinutes(agoMs);
    await runLoops(programs);
  }
  await traffic.sendAttacks();
  await sendSimulated(monitor, sites.simulatedId);
  await operations.protectScans.request(ownerOf(customers.north), customers.ids.db!);
  await copyRecords(database);
  await runLoops(programs);
  await scanServers(monitor, sensor);
  await setTime(nowMs);
  await sendLive(monitor, sensor, customers.addresses);
  for (let round = 0; round < 2; round += 1) await runLoops(programs);
  return { ...programs, ...customers, ...sites, sensor };
}

async function startPrograms(folder: string) {
  const databases = await Promise.all(['operations', 'monitor'].map((name) => createTestDatabase(name)));
  const clocks = await Promise.all(databases.map((one) => stopDatabaseClock(one, nowMs - 26 * hourMs)));
  for (const database of databases) await countIds(database);
  mock.timers.enable({ apis: ['Date'], now: nowMs - 26 * hourMs });
  const freeChance = repeatChance();
  const operations = await createWorld({ database: databases[0]!, demoWorld: true, metricsToken });
  const settings = {
    ...{
      SVC_DEMO_WORLD: '1',
      SVC_MAIL_FOLDER: folder,
      SVC_MONITOR_EVIDENCE_FOLDER: join(folder, 'evidence'),
    },
    ...{ SVC_MONITOR_METRICS_TOKEN: metricsToken, SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1' },
    SVC_WEBHOOK_PRIVATE_TARGETS: '1',
  };
  const monitor = await startMonitorServer(settings, { database: databases[1]! });
  const receiver = createServer((request, answer) => {
    request
      .resume()
      .on('end', () => answer.writeHead(request.url === '/broken' ? 500 : 200).end('thank you'));
  });
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done));
  return {
    operations,
    monitor,
    receiverUrl: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`,
    async setTime(ms: number) {
      mock.timers.setTime(ms);
      for (const clock of clocks) await clock.set(ms);
    },
    async [Symbol.asyncDispose]() {
      await monitor[Symbol.asyncDispose]();
      await operations[Symbol.asyncDispose]();
      receiver.close();
      mock.timers.reset();
      freeChance();
    },
  };
}

/** What both programs do beside their calls, once, in one order. */
async function runLoops({ operations, monitor: { monitor } }: Programs): Promise<void> {
  const { loops } = operations.background;
  for (const loop of [...loops, ...monitor.loops, ...loops]) {
    if ('runOnce' in loop && typeof loop.runOnce === 'function') await loop.runOnce();
    if ('drain' in loop && typeof loop.drain === 'function') await loop.drain();
    await operations.jobs.drain();
    await operations.post.idle();
  }
}

/** Two customers: one with everything that there is, one with a server and little credit. */
async function seedCustomers({ operations, receiverUrl }: Programs) {
  const { accounts, jobs, networks, webhooks } = operations;
  const [north, south] = [
    await operations.createCustomer('Northwind'),
    await operations.createCustomer('Southgate'),
  ];
  const owner = ownerOf(north);
  const { id: tenantId, organizationId } = north.tenant;
  const operatorEmail = 'olivia@staff.test';
  const operator = {
    email: operatorEmail,
    name: 'Olivia Operator',
    password,
    staffRole: 'operator' as const,
  };
  await accounts.createPerson(systemActor, operator);
  await accounts.inviteMember(owner, organizationId, 'guest@northwind.test');
  await operations.saveCard(north.tenant);
  const endpoint = {
    description: 'Receiver',
    eventTypes: webhookEvents.map((event) => event.type),
    organizationId,
    tenantId,
  };
  for (const path of ['/', '/broken'])
    await webhooks.createEndpoint(owner, { ...endpoint, url: receiverUrl + path });
  const network = await networks.createNetwork(owner, { tenantId, name: 'office', cidr: '10.0.0.0/24' });
  const ids: Record<string, number> = {};
  const addresses: Record<string, string[]> = {};
  for (const [name, customer] of Object.entries({ web: north, db: north, gone: north, shop: south })) {
    const { serverId, allocations } = await operations.deploy(customer.tenant, name);
    ids[name] = serverId;
    addresses[name] = allocations.map(({ address }) => address).sort();
  }
  await networks.attachServer(owner, tenantId, { serverId: ids.web!, networkId: network.id });
  const rule = { direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '22' } as const;
  await operations.firewalls.changeFirewall(owner, ids.web!, 0, {
    ...{ kind: 'add', rule: { ...rule, peers: ['198.51.100.0/24'], description: 'from the office' } },
  });
  await jobs.drain();
  await operations.servers.destroyServer(owner, tenantId, ids.gone!);
  await jobs.drain();
  delete addresses.gone;
  const view = { name: 'By application', query: 'range=24h&group=application', isShared: false };
  await operations.savedViews.save(owner, view);
  const keys = { north: await operations.createKey(north), south: await operations.createKey(south, 'read') };
  return { north, south, operatorEmail, ids, addresses, keys };
}

/** Connects the monitor to operations, and makes what its operators make. */
async function seedMonitor({ operations, monitor: { monitor, siteId }, receiverUrl }: Programs) {
  const adminToken = await operations.createToken(permissions);
  await monitor.connection.save(monitorActor, {
    baseUrl: operations.url,
    token: adminToken,
    isEnabled: true,
  });
  await monitor.connection.check();
  await monitor.sites.mapCluster(monitorActor, operations.clusterId, siteId);
  await monitor.sites.setLocalCidrs(monitorActor, siteId, ['203.0.113.0/24', '2001:db8:113::/64']);
  const probe = { kind: 'icmp', target: '198.51.100.1', intervalSeconds: 10, timeoutMs: 1_000 };
  const probeId = await monitor.probes.add(monitorActor, siteId, { name: 'Gateway', ...probe });
  const simulated = await monitor.sites.create(monitorActor, 'Simulated site', { isSimulated: true });
  await monitor.sites.setLocalCidrs(monitorActor, simulated.id, ['192.0.2.0/24']);
  const thresholds = { inbound: { syn_pps: '8k' }, outbound: {} };
  await monitor.protection.saveGroup(
    monitorActor,
    siteId,
    null,
    { name: 'Web', prefixes: ['203.0.113.0/28'], thresholds },
    0,
  );
  await monitor.alerts.addChannel(monitorActor, {
    ...{ kind: 'webhook', name: 'On call', settings: { url: `${receiverUrl}/` } },
  });
  await monitor.savedViews.save(monitorActor, siteId, {
    name: 'Applications',
    query: 'range=24h&group=application',
  });
  await monitor.handOff.addRule(monitorActor, siteId, {
    ...{ name: 'Tell upstream', kind: 'webhook', prefixes: ['203.0.113.0/24'], direction: 'inbound' },
    ...{ minPps: '20k', minBps: '', holdSeconds: '300', url: `${receiverUrl}/` },
  });
  const { token: readToken } = await monitor.readTokens.create(monitorActor, siteId, {
    name: 'Grafana',
    days: '',
  });
  return { siteId, simulatedId: simulated.id, probeId, readToken, adminToken };
}
