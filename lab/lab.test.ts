// Slow: starts labs with guests, and waits for what does not come.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { callControl } from './control/index.ts';
import { createLab, type GuestInput, inspectLab, type Lab, removeLab } from './index.ts';
import { makeDataDir, needsRoot, patientMs, startLab } from './testing/lab-tests.ts';
import type { Exchange } from './traffic/exchanges.ts';
import { addressRecords } from './traffic/internet-plan.ts';
import { services } from './traffic/services.ts';
import { wireOf } from './traffic/wires.ts';
import { readCounters } from './truth/counters.ts';
import { nameWorld } from './world/name-world.ts';
import { listNamespaces } from './world/remove-world.ts';
import { runTool } from './world/run-tool.ts';

const guest: GuestInput = {
  name: 'vm-17',
  mac: '52:54:00:5e:00:11',
  addresses: [{ address: '203.0.113.17' }, { address: '2001:db8:113::17' }],
};
const holdExchangesFile = fileURLToPath(new URL('./testing/hold-exchanges.ts', import.meta.url));
const sendDatagramsFile = fileURLToPath(new URL('./testing/send-datagrams.ts', import.meta.url));
const supervisorFile = fileURLToPath(new URL('./testing/run-supervisor.ts', import.meta.url));

/** Holds exchanges inside a guest; each result is the bytes that came, or why they didn't. */
async function holdInGuest(lab: Lab, name: string, exchanges: Omit<Exchange, 'certificate'>[]) {
  const certificate = join(dirname(lab.facts.truth_ledger), 'certificate.pem');
  const argv = [process.execPath, holdExchangesFile, JSON.stringify({ certificate, exchanges })];
  return JSON.parse(await lab.execInGuest(name, argv)) as (number | string)[];
}

function leftovers(dataDir: string): string[] {
  const names = nameWorld(dataDir);
  const link = existsSync(`/sys/class/net/${names.hostLink}`) ? [names.hostLink] : [];
  const files = [names.controlSocket, names.worldFile].filter((file) => existsSync(file));
  return [...listNamespaces(names), ...link, ...files];
}

async function spawnSupervisor(t: TestContext, dataDir: string) {
  const child = spawn(process.execPath, [supervisorFile, dataDir, JSON.stringify(guest)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => removeLab(dataDir));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  assert.equal(line.toString(), 'up\n');
  return child;
}

describe('a lab world', needsRoot, () => {
  test('lets a guest look up and reach every kind of service by IPv4 and IPv6', async (t) => {
    const lab = await startLab(t);
    assert.equal(await lab.put(guest), true);
    const kinds = [
      { protocol: 'https', host: 'www.example.com', bytes: 70_001 },
      { protocol: 'https', host: 'cdn.example.net', bytes: 5 },
      { protocol: 'http', host: 'updates.example.edu', bytes: 123_456 },
      { protocol: 'time', host: 'time.example.org', bytes: 48 },
      { protocol: 'whois', host: 'whois.example.net', bytes: 1200 },
    ] as const;
    const exchanges = kinds.flatMap((kind) => [4, 6].map((family) => ({ ...kind, family: family as 4 | 6 })));
    const results = await holdInGuest(lab, guest.name, exchanges);
    assert.deepEqual(
      results,
      exchanges.map((exchange) => exchange.bytes),
    );
    const served = services.flatMap(({ name: host, kind: protocol, bytes, sentBytes }) =>
      ([4, 6] as const).map((family) => ({ protocol, host, family, bytes, sentBytes })),
    );
    const answered = served.map(({ protocol, bytes }) => (wireOf(protocol)?.answer.length ?? 0) + bytes);
    assert.deepEqual(await holdInGuest(lab, guest.name, served), answered);
    const many = { protocol: 'lookup', host: 'pool.example.org', family: 4, bytes: 0 } as const;
    const unknown = { protocol: 'lookup', host: 'unknown.example.org', family: 4, bytes: 0 } as const;
    assert.deepEqual(await holdInGuest(lab, guest.name, [many, unknown]), [
      0,
      'queryA ENOTFOUND unknown.example.org',
    ]);
  });

  test('counts exactly the IP bytes of a known transfer, by address and direction', async (t) => {
    const lab = await startLab(t);
    await lab.put(guest);
    const site = addressRecords.get('time.example.org')!;
    const [packets, payload, answer] = [250, 1000, 48];
    for (const address of [site.ipv4, site.ipv6]) {
      const argv = [process.execPath, sendDatagramsFile, address, String(packets), String(payload)];
      assert.equal(await lab.execInGuest(guest.name, argv), String(packets));
    }
    const counts = await readCounters(lab.inHypervisor([]));
    const expected = (headers: number) => ({
      rxBytes: packets * (headers + answer),
      rxPackets: packets,
      txBytes: packets * (headers + payload),
      txPackets: packets,
    });
    assert.deepEqual(Object.fromEntries(counts), {
      '203.0.113.17': expected(20 + 8),
      '2001:db8:113::17': expected(40 + 8),
    });
  });

  test('counts what the hypervisor itself exchanges with a guest', async (t) => {
    const lab = await startLab(t);
    await lab.put(guest);
    const [packets, payload] = [40, 100];
    const script = `const [address, family] = process.argv.slice(1);
      const socket = require('node:dgram').createSocket(family);
      (async () => {
        for (let i = 0; i < ${packets}; i += 1)
          await new Promise((sent) => socket.send(Buffer.alloc(${payload}), 9, address, sent));
        socket.close();
      })();`;
    for (const { address } of guest.addresses!) {
      const family = address.includes(':') ? 'udp6' : 'udp4';
      await lab.execInHypervisor([process.execPath, '-e', script, address, family]);
      const header = address.includes(':') ? 40 : 20;
      const count = await until('all arrived', patientMs, async () => {
        const now = (await readCounters(lab.inHypervisor([]))).get(address)!;
        return now.rxPackets >= packets && now.txPackets > 0 && now;
      });
      assert.deepEqual([count.rxPackets, count.rxBytes], [packets, packets * (header + 8 + payload)]);
      // The guest says that nothing listens, with a copy of what it got, as often as its kernel allows.
      assert.ok(count.txPackets > 0 && count.txPackets <= packets, `${count.txPackets} answers`);
      assert.equal(count.txBytes, count.txPackets * (2 * header + 8 + 8 + payload));
    }
  });

  test('makes its guests talk and be called, until they are off', async (t) => {
    const lab = await startLab(t, { outboundPerSecond: 10, inboundPerSecond: 10 });
    await lab.put({ ...guest, addresses: [{ address: '203.0.113.17' }] });
    const prefix = lab.inHypervisor([]);
    await until('traffic both ways', patientMs, async () => {
      const count = (await readCounters(prefix)).get('203.0.113.17')!;
      return count.rxPackets > 50 && count.txPackets > 50;
    });
    await lab.setPower(guest.name, 'off');
    assert.equal(lab.get(guest.name).power, 'off');
    assert.equal(existsSync(`/run/netns/${lab.get(guest.name).namespace}`), false);
    const links = await lab.execInHypervisor(['ip', '-o', 'link', 'show', 'master', 'br0']);
    assert.equal(links, '');
  });

  test('stands beside a second world with the same guests, and goes alone', async (t) => {
    const [first, second] = [await startLab(t), await startLab(t)];
    await first.put(guest);
    await second.put(guest);
    const fetch = { protocol: 'http', host: 'www.example.com', family: 4, bytes: 10 } as const;
    assert.deepEqual(await holdInGuest(first, guest.name, [fetch]), [10]);
    await first.stop();
    assert.deepEqual(await holdInGuest(second, guest.name, [fetch]), [10]);
    assert.deepEqual([...(await readCounters(second.inHypervisor([]))).keys()].length, 2);
  });

  test('leaves nothing behind when it stops', async (t) => {
    const dataDir = makeDataDir(t);
    const lab = await startLab(t, { dataDir });
    await lab.put(guest);
    assert.equal(leftovers(dataDir).length, 6);
    await lab.stop();
    assert.deepEqual(leftovers(dataDir), []);
    assert.equal(await inspectLab(dataDir), null);
  });

  test('refuses a second supervisor of one data directory', async (t) => {
    const dataDir = makeDataDir(t);
    const lab = await startLab(t, { dataDir });
    await assert.rejects(createLab({ dataDir, reporter: silentReporter }).start(), (error) =>
      hasCode(error, 'lab.already_up'),
    );
    assert.equal((await inspectLab(dataDir))?.facts.world, lab.facts.world);
  });

  test('whose supervisor was killed stops talking at once, and the next start clears it and makes its guests again', async (t) => {
    const dataDir = makeDataDir(t);
    const child = await spawnSupervisor(t, dataDir);
    const namespaces = listNamespaces(nameWorld(dataDir));
    assert.equal(namespaces.length, 3);
    child.kill('SIGKILL');
    await until('the processes ended', patientMs, async () => {
      const pids = await Promise.all(namespaces.map((name) => runTool(['ip', 'netns', 'pids', name])));
      return pids.every((output) => output === '');
    });
    assert.equal(leftovers(dataDir).length, 6);
    const lab = await startLab(t, { dataDir });
    assert.deepEqual(
      lab.list().map((standing) => [standing.name, standing.power]),
      [[guest.name, 'on']],
    );
    const fetch = { protocol: 'http', host: 'www.example.com', family: 6, bytes: 10 } as const;
    assert.deepEqual(await holdInGuest(lab, guest.name, [fetch]), [10]);
    await lab.stop();
    assert.deepEqual(leftovers(dataDir), []);
  });

  test('whose supervisor was killed is removed by "lab down"', async (t) => {
    const dataDir = makeDataDir(t);
    const child = await spawnSupervisor(t, dataDir);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await removeLab(dataDir);
    assert.deepEqual(leftovers(dataDir), []);
  });

  test('answers drivers on its control socket as the document says', async (t) => {
    const lab = await startLab(t);
    const call = (method: string, path: string, body?: object) => {
      return callControl(lab.facts.control_socket, method, path, body);
    };
    const code = async (method: string, path: string, body?: object) => {
      const answer = await call(method, path, body);
      return [answer.status, (answer.body as { error: { code: string } }).error.code];
    };
    const body = {
      mac: guest.mac,
      addresses: [{ address: '203.0.113.17' }, { address: '2001:db8:113:0::17' }],
    };
    assert.deepEqual((await call('GET', '/world')).body, lab.facts);
    const made = await call('PUT', '/guests/vm-17', body);
    assert.equal(made.status, 201);
    const { exchanges: _, ...shown } = made.body as Record<string, unknown>;
    assert.deepEqual(shown, {
      name: 'vm-17',
      mac: guest.mac,
      addresses: [
        { address: '203.0.113.17', prefix_length: 24, gateway: '203.0.113.1' },
        { address: '2001:db8:113::17', prefix_length: 64, gateway: '2001:db8:113::1' },
      ],
      private_interfaces: [],
      image: null,
      rebuild: 0,
      size: null,
      speed_mbit: null,
      rescue: null,
      iso: null,
      guard: 'on',
      power: 'on',
      interface: lab.get('vm-17').interface,
      namespace: lab.get('vm-17').namespace,
    });
    assert.equal((await call('PUT', '/guests/vm-17', body)).status, 200);
    assert.deepEqual(await code('PUT', '/guests/vm-17', { ...body, mac: '52:54:00:5e:00:12' }), [
      409,
      'guest_differs',
    ]);
    assert.deepEqual(await code('PUT', '/guests/other', body), [409, 'mac_taken']);
    assert.deepEqual(await code('PUT', '/guests/other', { ...body, mac: '52:54:00:5e:00:12' }), [
      409,
      'address_taken',
    ]);
    assert.deepEqual(await code('PUT', '/guests/other', { mac: 'x', addresses: [] }), [400, 'body_invalid']);
    assert.deepEqual(await code('PUT', '/guests/Other', body), [400, 'body_invalid']);
    assert.deepEqual(await code('PUT', '/guests/other', {}), [400, 'body_invalid']);
    assert.deepEqual(await code('GET', '/guests/other'), [404, 'guest_unknown']);
    assert.deepEqual(await code('GET', '/nothing'), [404, 'call_unknown']);
    assert.deepEqual(await code('POST', '/world/stop'), [400, 'body_invalid']);
    const off = await call('PUT', '/guests/vm-17/power', { power: 'off' });
    assert.equal((off.body as { power: string }).power, 'off');
    assert.equal(((await call('POST', '/guests/vm-17/restart')).body as { power: string }).power, 'on');
    assert.equal((await call('DELETE', '/guests/vm-17')).status, 204);
    assert.equal((await call('DELETE', '/guests/vm-17')).status, 204);
    assert.deepEqual((await call('GET', '/guests')).body, { guests: [] });
  });
});
