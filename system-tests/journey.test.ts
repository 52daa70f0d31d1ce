// Slow: follows a server of the lab through minutes, a flood and a whole port scan.
/**
 * The complete journey on real packets: a customer deploys a server by an API call, its traffic flows, and every minute
 * shown to its owner equals, byte for byte, the counters of nftables beside the sensor.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Client, NotFoundError, type Server } from '#clients/typescript/index.ts';
import { services } from '#lab/traffic/services.ts';
import { attack } from './testing/attack.ts';
import { visitPages } from './testing/browser.ts';
import { compareMinutes } from './testing/compare-minutes.ts';
import { needsRoot } from './testing/needs-root.ts';
import { apiOf, readMinutes, signIn, type Visitor } from './testing/people.ts';
import { type RunningDemo, runDemo } from './testing/run-demo.ts';
import { allowScans, holdScans, listListening, readPorts } from './testing/scanning.ts';

/** Registrable domains that the lab's clients speak or look up soon, and those that they may. */
const spokenNames = ['example.com', 'example.edu', 'example.net', 'example.org'];
const serviceNames = services.map(({ name }) => name.split('.').slice(-2).join('.'));
/** Protocol of the resolver, which no client names. */
const spokenProtocols = ['DNS'];

interface ApplicationView {
  application: string;
  service: string | null;
}

interface IncidentView {
  id: string;
  address: string;
  class: string;
  direction: string;
  state: string;
  started_at: string;
  recovered_at: string | null;
}

describe('the journey of a server', needsRoot, () => {
  let demo: RunningDemo;
  let server: Server;
  /** The server of the demo's own world. */
  let scanned: Server;
  let api: Client;
  let customer: Visitor;

  before(async () => {
    demo = await runDemo();
    await holdScans(demo);
    customer = await signIn(demo.file.operations_url, demo.file.customer);
    api = apiOf(demo.file, demo.file.full_key);
    // The flood below is one that the slowest machine sends and counts; its threshold stands before the server does.
    const operator = await signIn(demo.file.monitor_url, demo.file.monitor_operator);
    await operator.submit('/sites/1/protection', 'thresholds', { 'inbound.syn_pps': '1000' });
  });
  after(() => demo?.stop());

  const addressesOf = ({ public_ips }: Server) => public_ips.map((ip) => ip.address).sort();
  const readRequested = async () =>
    (await readPorts(customer, scanned.id)).scans.filter(({ kind }) => kind === 'manual');

  test('API-4.b: one call deploys a server, which becomes a guest with real addresses', async () => {
    const created = await api.createServer({ plan: 'kvm-1', image: 'debian-13', name: 'journey' });
    assert.ok(created.root_password);
    server = await api.waitForServer(created.id, 'running', { timeoutMs: 60_000, everyMs: 250 });
    assert.deepEqual(server.public_ips.map((ip) => ip.family).sort(), [4, 6]);
    assert.ok(!('root_password' in server));
    const guest = (await demo.listGuests()).find((entry) => entry.name === `vm-${server.id}`);
    assert.equal(guest?.power, 'on');
  });

  // The slow things go on beside one another: this scan, the flood, and the minutes that pass meanwhile.
  test('NET-2.7.1, NET-3.1: a customer requests a port scan; it is queued, and runs when a sensor has started it', async () => {
    const { servers } = await api.listServers({ name: 'web-1' });
    scanned = servers[0]!;
    const path = `/client/servers/${scanned.id}/protect`;
    await customer.submit(path, 'scan', {});
    const requested = await readRequested();
    assert.deepEqual(requested.map(({ address }) => address).sort(), addressesOf(scanned));
    assert.deepEqual([...new Set(requested.map(({ state }) => state))], ['queued']);
    assert.match((await customer.get(path)).text, /queued<\/span> Requested scan of/);
    await allowScans(demo, 'web-1');
    await demo.until('the page says that the scan runs', 120_000, async () =>
      /Requested scan of [0-9a-f.:]+: running/.test((await customer.get(path)).text),
    );
    const begun = (await readRequested()).filter(({ state }) => state !== 'queued');
    assert.ok(begun.length > 0 && begun.every(({ started_at }) => started_at !== null));
  });

  test('NET-3.2: a flood is on its page while it goes on, its owner is told by mail, and it ends by recovery', async () => {
    const target = server.public_ips.find((ip) => ip.family === 4)!.address;
    await demo.until('a sensor protects the address', 180_000, async () => {
      const sql = 'select 1 from detector_epochs where $1::inet <<= any(prefixes)';
      return (await demo.query('monitor', sql, [target])).length > 0;
    });
    const path = `/client/servers/${server.id}/protect`;
    const readFlood = async () => {
      const { incidents } = await customer.getJson<{ incidents: IncidentView[] }>(`${path}/incidents.json`);
      return incidents.find((one) => one.class === 'syn_flood' && one.address === target) ?? null;
    };
    assert.equal(await readFlood(), null);
    const flood = attack(demo, { target, class: 'syn_flood', pps: 5_000, seconds: 15 });
    const seen = await demo.until('the flood is in the list of incidents', 120_000, readFlood);
    assert.equal(seen.direction, 'inbound');
    assert.match((await customer.get(path)).text, /SYN flood/);
    await flood;
    const reader = await signIn(demo.file.operations_url, demo.file.operator);
    await demo.until('the owner has a mail', 120_000, async () => {
      const { text } = await reader.get('/dev/mail/');
      return text.includes(target);
    });
    const ended = await demo.until('the flood has recovered', 300_000, async () => {
      const found = await readFlood();
      return found?.state === 'recovered' ? found : null;
    });
    const healthyMs = Date.parse(ended.recovered_at!) - Date.parse(ended.started_at);
    assert.ok(healthyMs >= 60_000, `recovered ${healthyMs} ms after its start`);
    assert.equal(ended.id, seen.id);
    const file = await demo.until('its first packets are at the monitor', 60_000, async () => {
      const sql = `select f.id, f.packets, o.incident_id from evidence_files f
        join incident_observations o using (sensor_id, observation_id)
        where f.stored_at is not null and o.target = $1`;
      type File = { id: string; packets: number; incident_id: string };
      return (await demo.query<File>('monitor', sql, [target]))[0] ?? null;
    });
    assert.equal(file.packets, 2000);
    const incident = `/sites/1/incidents/${file.incident_id}`;
    const operator = await signIn(demo.file.monitor_url, demo.file.monitor_operator);
    const packets = (await operator.get(`${incident}/evidence/${file.id}`)).text;
    assert.ok(packets.includes(`${target}:`) && packets.includes('SYN'), packets);
  });

  test("NET-8.B: its owner sees each minute's bytes exactly as nftables counted them, by IPv4 and IPv6", async () => {
    const addresses = server.public_ips.map((ip) => ip.address);
    const minutes = await demo.until('two exact minutes of each address are shown', 360_000, async () => {
      const shown = await readMinutes(customer, server.id);
      const exact = new Set(
        demo
          .readTruth()
          .filter((row) => row.exact)
          .map((row) => `${row.minute} ${row.address}`),
      );
      const known = shown.filter((row) => exact.has(`${Date.parse(row.timestamp) / 1000} ${row.address}`));
      return addresses.every((one) => known.filter((row) => row.address === one).length >= 2) && known;
    });
    const comparison = compareMinutes(minutes, demo.readTruth());
    assert.deepEqual(comparison.faults, []);
    assert.ok(comparison.equal >= 4, `${comparison.equal} minutes were equal`);
    assert.ok(minutes.every((row) => row.inbound_bytes! > 10_000 && row.outbound_bytes! > 10_000));
  });

  test('its owner sees the applications in the traffic, and no others', async () => {
    const path = `/client/servers/${server.id}/traffic?range=24h&by=service&format=json&table=service`;
    const { rows } = await customer.getJson<{ rows: ApplicationView[] }>(path);
    // What no application is known of has no port.
    const applications = rows.filter(({ service }) => service !== null);
    const names = new Set(applications.map((entry) => entry.application));
    for (const name of spokenNames) assert.ok(names.has(name), `${name} is missing in ${[...names]}`);
    const strange = [...names].filter(
      (name) => ![...spokenNames, ...serviceNames, ...spokenProtocols].includes(name),
    );
    assert.deepEqual(strange, []);
    const kinds = new Set(applications.map((entry) => `${entry.application} ${entry.service}`));
    // By SNI, by Host, and two that only a DNS answer names.
    const expected = [
      'example.com tcp/443',
      'example.edu tcp/80',
      'example.org udp/123',
      'example.net tcp/43',
    ];
    for (const kind of expected) assert.ok(kinds.has(kind), `${kind} is missing in ${[...kinds].join('; ')}`);
  });

  test('another customer gets the answer of a server that does not exist, on pages and by the API', async () => {
    const other = await signIn(demo.file.operations_url, demo.file.other_customer);
    for (const tab of [
      '',
      '/traffic',
      '/traffic/minutes.json',
      '/protect',
      '/protect/minutes.json',
      '/traffic?format=json&table=application',
    ]) {
      const foreign = await other.get(`/client/servers/${server.id}${tab}`);
      const missing = await other.get(`/client/servers/999999${tab}`);
      assert.equal(foreign.status, 404, tab);
      assert.equal(foreign.status, missing.status, tab);
    }
    const stranger = apiOf(demo.file, demo.file.other_full_key);
    await assert.rejects(stranger.readServer(server.id), NotFoundError);
    for await (const entry of stranger.listServers()) assert.notEqual(entry.id, server.id);
  });

  test('pages show it in a real browser, on a phone, without errors', async () => {
    const operator = await signIn(demo.file.monitor_url, demo.file.monitor_operator);
    const visits = [
      {
        url: `${demo.file.operations_url}/client/servers/${server.id}/traffic?range=15m`,
        visitor: customer,
        shows: 'example.com',
      },
      { url: `${demo.file.operations_url}/client/`, visitor: customer, shows: 'journey' },
      { url: `${demo.file.monitor_url}/sites/1/traffic`, visitor: operator, shows: 'Demo site' },
      { url: `${demo.file.monitor_url}/sites/1/applications`, visitor: operator, shows: 'example.com' },
      { url: `${demo.file.monitor_url}/sites/1/devices`, visitor: operator, shows: 'journey' },
    ];
    assert.deepEqual(await visitPages(visits), []);
  });

  test('NET-3.1, NET-2.7.5: the scan is complete, and its page has the ports that are open in the guest, and what answers', async () => {
    const address = scanned.public_ips.find((ip) => ip.family === 4)!.address;
    const scan = await demo.until('the scan has ended', 600_000, async () => {
      const found = (await readRequested()).find((one) => one.address === address)!;
      return found.finished_at !== null && found;
    });
    assert.equal(scan.state, 'complete');
    const guest = (await demo.listGuests()).find((entry) => entry.name === `vm-${scanned.id}`)!;
    const listening = listListening(guest.namespace);
    assert.ok(listening.length > 1, `${listening}`);
    const { ports } = await readPorts(customer, scanned.id);
    const open = ports.filter((one) => one.address === address && one.transport === 'tcp');
    assert.deepEqual(
      [...new Set(open.map(({ port }) => port))].sort((a, b) => a - b),
      listening,
    );
    const path = `/client/servers/${scanned.id}/protect`;
    for (const page of [path, `${path}/scans/${scan.id}`]) {
      const { text } = await customer.get(page);
      for (const port of listening)
        assert.ok(text.includes(`tcp/${port}<`), `tcp/${port} is missing on ${page}`);
    }
    const other = await signIn(demo.file.operations_url, demo.file.other_customer);
    assert.equal((await other.get(`${path}/scans/${scan.id}`)).status, 404);
    const sql = 'select host(address) as address from scan_attempts where address = any($1::inet[])';
    assert.deepEqual(
      await demo.query('monitor', sql, [addressesOf(server)]),
      [],
      'NET-2.7.8: its inventory is old',
    );
  });

  test('NET-2.8: destroying it removes the guest and archives its device at the monitor', async () => {
    const mac = (await demo.listGuests()).find((entry) => entry.name === `vm-${server.id}`)!.mac;
    const archivedAt = async () => {
      const sql = 'select archived_at from devices where mac = $1';
      return (await demo.query<{ archived_at: Date | null }>('monitor', sql, [mac]))[0];
    };
    const device = await demo.until(
      'the monitor knows the device',
      60_000,
      async () => (await archivedAt()) ?? null,
    );
    assert.equal(device.archived_at, null);
    await api.destroyServer(server.id);
    await demo.until('the guest is gone', 60_000, async () => {
      return (await demo.listGuests()).every((entry) => entry.name !== `vm-${server.id}`);
    });
    await demo.until('the device is archived', 60_000, async () => (await archivedAt())?.archived_at ?? null);
  });

  test('Ctrl-C ends all processes and leaves nothing on the machine', async (t) => {
    const startedMs = performance.now();
    const said = demo.output();
    assert.equal(await demo.stop(), 0, said);
    t.diagnostic(`stopped in ${Math.round(performance.now() - startedMs)} ms`);
    assert.deepEqual(demo.leftovers(), []);
  });
});
