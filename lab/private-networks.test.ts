// Slow: sends packets through the private networks of a lab, and waits for those that do not come.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '#common/errors/index.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { until } from '#service-kit/testing/until.ts';
import { callControl } from './control/index.ts';
import type { GuestInput, Lab, PrivateNic } from './index.ts';
import { fetchSeven, makeDataDir, needsRoot, patientMs, startLab } from './testing/lab-tests.ts';

const nic = (network: number, last: number, more: Partial<PrivateNic> = {}): PrivateNic => ({
  network,
  mac: `52:56:00:00:${String(network).padStart(2, '0')}:${String(last).padStart(2, '0')}`,
  address: `10.20.0.${last}`,
  prefixLength: 24,
  ...more,
});
const guest = (last: number, nics: PrivateNic[]): GuestInput => ({
  name: `vm-${last}`,
  mac: `52:54:00:00:00:${last}`,
  addresses: [{ address: `203.0.113.${last}` }],
  nics,
});

/** Fetches from a guest's own web server; the number of its bytes, or `unreachable`. */
async function fetchFrom(lab: Lab, name: string, address: string, withinMs = 600): Promise<string> {
  return lab.execInGuest(name, fetchSeven(`http://${address}`, withinMs)).catch(() => 'unreachable');
}

/** Who answers for an address on a guest's private network. */
async function macBehind(lab: Lab, name: string, network: number, address: string): Promise<string | null> {
  const output = await lab.execInGuest(name, ['ip', 'neigh', 'show', address, 'dev', `pn${network}`]);
  return /lladdr (\S+)/.exec(output)?.[1] ?? null;
}

/** Two guests on network 31, one beside it, and one on another customer's network with the same block. */
async function startNeighbours(t: TestContext, dataDir: string) {
  const lab = await startLab(t, { dataDir });
  await lab.put(guest(11, [nic(31, 2)]));
  await lab.put(guest(12, [nic(31, 3)]));
  await lab.put(guest(13, []));
  await lab.put(guest(14, [nic(32, 3)]));
  return lab;
}

test('private networks of a lab world', needsRoot, async (world) => {
  const dataDir = makeDataDir(world);
  const lab = await startNeighbours(world, dataDir);

  await world.test(
    'API-4.7: two guests on one network reach each other; a third doesn’t, nor another network with the same block',
    async () => {
      assert.equal(await fetchFrom(lab, 'vm-11', '10.20.0.3', patientMs), '7');
      assert.equal(await macBehind(lab, 'vm-11', 31, '10.20.0.3'), nic(31, 3).mac);
      assert.equal(await fetchFrom(lab, 'vm-12', '10.20.0.2', patientMs), '7');
      assert.equal(await fetchFrom(lab, 'vm-13', '10.20.0.2'), 'unreachable');
      assert.equal(await fetchFrom(lab, 'vm-14', '10.20.0.2'), 'unreachable');
      // Also not when the outsider sets a route and an address of its own making.
      await lab.execInGuest('vm-13', ['ip', 'route', 'add', '10.20.0.0/24', 'via', '203.0.113.1']);
      assert.equal(await fetchFrom(lab, 'vm-13', '10.20.0.2'), 'unreachable');
      await lab.execInGuest('vm-13', ['ip', 'route', 'del', '10.20.0.0/24', 'via', '203.0.113.1']);
      // Through the public network they still reach each other.
      assert.equal(await fetchFrom(lab, 'vm-13', '203.0.113.11', patientMs), '7');
    },
  );

  await world.test('a NIC can’t speak for an address or a MAC that is not its own', async () => {
    await lab.put(guest(15, [nic(31, 4)]));
    const beAt = async (address: string) => {
      await lab.execInGuest('vm-15', ['ip', 'addr', 'flush', 'dev', 'pn31']);
      await lab.execInGuest('vm-15', ['ip', 'addr', 'add', `${address}/24`, 'dev', 'pn31']);
    };
    await beAt('10.20.0.3');
    assert.equal(await fetchFrom(lab, 'vm-15', '10.20.0.2'), 'unreachable');
    await beAt('10.20.0.4');
    assert.equal(await fetchFrom(lab, 'vm-15', '10.20.0.2', patientMs), '7');
    await lab.execInGuest('vm-15', ['ip', 'link', 'set', 'pn31', 'address', '52:56:00:00:00:99']);
    assert.equal(await fetchFrom(lab, 'vm-15', '10.20.0.3'), 'unreachable');
  });

  await world.test('NICs come and go while their guest runs, and outlive its power', async () => {
    await lab.attachNic('vm-13', nic(31, 5));
    assert.equal(await fetchFrom(lab, 'vm-13', '10.20.0.2', patientMs), '7');
    await lab.attachNic('vm-13', nic(31, 5));
    await lab.restart('vm-13');
    assert.equal(await fetchFrom(lab, 'vm-13', '10.20.0.2', patientMs), '7');
    await lab.detachNic('vm-13', 31, nic(31, 5).mac);
    assert.equal(await fetchFrom(lab, 'vm-13', '10.20.0.2'), 'unreachable');
    await lab.detachNic('vm-13', 31, nic(31, 5).mac);
    await assert.rejects(lab.attachNic('vm-13', nic(31, 2)), (error) => hasCode(error, 'lab.mac_taken'));
    await assert.rejects(lab.attachNic('vm-13', nic(31, 2, { mac: '52:56:00:00:00:77' })), (error) =>
      hasCode(error, 'lab.address_taken'),
    );
    await lab.setPower('vm-13', 'off');
    await lab.attachNic('vm-13', nic(31, 6));
    await lab.setPower('vm-13', 'on');
    assert.equal(await fetchFrom(lab, 'vm-11', '10.20.0.6', patientMs), '7');
  });

  await world.test(
    'while a guest sends, its attached address passes, and one that was released or replaced does not',
    async (t) => {
      const [mine, others] = [nic(31, 7), nic(31, 8, { mac: nic(31, 7).mac })];
      const file = join(dataDir, 'moves.hex');
      const frameFrom = (address: string) =>
        Buffer.from(
          ethernet(udp({ from: address, fromPort: 9, to: '10.20.0.2', toPort: 9 }, new Uint8Array(8)), {
            source: mine.mac,
          }),
        ).toString('hex');
      writeFileSync(file, `${frameFrom(mine.address)}\n${frameFrom(others.address)}\n`);
      await lab.execInHypervisor([
        'nft',
        `table bridge moves {
        counter mine {
        }
        counter others {
        }
        chain seen {
          type filter hook prerouting priority -250;
          ip saddr ${mine.address} counter name mine;
          ip saddr ${others.address} counter name others;
        }
      }`,
      ]);
      /** Frames that passed the port since the last look. */
      const look = async () => {
        const json = await lab.execInHypervisor([
          'nft',
          '-j',
          'reset',
          'counters',
          'table',
          'bridge',
          'moves',
        ]);
        const { nftables } = JSON.parse(json) as {
          nftables: { counter?: { name: string; packets: number } }[];
        };
        const passes = (name: string) =>
          nftables.find(({ counter }) => counter?.name === name)!.counter!.packets > 0;
        return { mine: passes('mine'), others: passes('others') };
      };
      const both = { mine: false, others: false };
      /** Waits until these pass; the others must not, from the last look on. */
      const passing = (wanted: Partial<typeof both>) =>
        until(`${Object.keys(wanted).join(' and ')} pass`, patientMs, async () => {
          const seen = await look();
          for (const [whose, passes] of Object.entries(seen))
            if (passes) assert.ok(whose in wanted, `${whose} passes`);
          return Object.keys(wanted).every((whose) => seen[whose as keyof typeof seen]) || null;
        });
      const namespace = lab.get('vm-13').namespace;
      const script = fileURLToPath(new URL('./testing/keep-sending.ts', import.meta.url));
      const start = () => {
        const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, script, 'pn31', file], {
          stdio: 'ignore',
        });
        t.after(() => child.kill('SIGKILL'));
      };
      start();
      assert.deepEqual(await look(), both);
      await lab.attachNic('vm-13', mine);
      await passing({ mine: true });
      // Another address takes its place, and neither passes with the other's.
      await lab.attachNic('vm-13', others);
      await look();
      await passing({ others: true });
      await lab.attachNic('vm-13', mine);
      await look();
      await passing({ mine: true });
      for (const guard of ['off', 'on'] as const) {
        await lab.setGuard('vm-13', guard);
        await look();
        await passing(guard === 'off' ? { mine: true, others: true } : { mine: true });
      }
      await lab.detachNic('vm-13', 31, mine.mac);
      await look();
      assert.deepEqual(await look(), both);
      await lab.attachNic('vm-13', others);
      await passing({ others: true });
      await lab.detachNic('vm-13', 31, others.mac);
      await lab.execInHypervisor(['nft', 'delete table bridge moves']);
    },
  );

  await world.test('a guest with private NICs only is reached over them, and has no other link', async () => {
    await lab.put({ name: 'vm-20', nics: [nic(31, 9)] });
    assert.equal(lab.get('vm-20').interface, null);
    assert.equal(await fetchFrom(lab, 'vm-11', '10.20.0.9', patientMs), '7');
    const links = await lab.execInGuest('vm-20', ['ip', '-o', '-br', 'link']);
    assert.deepEqual(
      links
        .trim()
        .split('\n')
        .map((line) => line.split(/[\s@]/)[0]),
      ['lo', 'pn31'],
    );
  });

  await world.test('a sync puts back what is missing and takes away what does not belong', async () => {
    const links = await lab.execInHypervisor(['ip', '-o', '-br', 'link', 'show', 'master', 'pn31']);
    assert.match(links, /pv-/);
    for (const line of links.trim().split('\n'))
      await lab.execInHypervisor(['ip', 'link', 'delete', line.split('@')[0]!]);
    assert.equal(await fetchFrom(lab, 'vm-11', '10.20.0.3'), 'unreachable');
    const members = [
      { guest: 'vm-11', nic: nic(31, 2) },
      { guest: 'vm-13', nic: nic(31, 7) },
    ];
    await lab.syncNetwork(31, members);
    assert.equal(await fetchFrom(lab, 'vm-11', '10.20.0.7', patientMs), '7');
    assert.deepEqual(lab.get('vm-12').nics, []);
    await lab.syncNetwork(31, members);
    await assert.rejects(lab.removeNetwork(31), (error) => hasCode(error, 'lab.network_in_use'));
    await lab.syncNetwork(31, []);
    await lab.removeNetwork(31);
    await lab.removeNetwork(31);
    const left = await lab.execInHypervisor(['ip', '-o', '-br', 'link', 'show', 'type', 'bridge']);
    assert.doesNotMatch(left, /pn31/);
  });

  await world.test(
    'drivers attach, detach, sync and remove over the control socket as the document says',
    async () => {
      const call = async (method: string, path: string, body?: object) => {
        const answer = await callControl(lab.facts.control_socket, method, path, body);
        const error = (answer.body as { error?: { code: string } } | undefined)?.error;
        return error ? [answer.status, error.code] : answer.status;
      };
      const wire = (one: PrivateNic) => ({
        mac: one.mac,
        address: one.address,
        prefix_length: one.prefixLength,
      });
      const definition = { private_interfaces: [{ network: 41, ...wire(nic(41, 2)) }] };
      assert.equal(await call('PUT', '/guests/vm-1', definition), 201);
      assert.deepEqual(await call('PUT', '/guests/vm-2', {}), [400, 'body_invalid']);
      assert.equal(await call('PUT', '/guests/vm-1/networks/43', wire(nic(43, 2))), 200);
      assert.deepEqual(await call('PUT', '/guests/vm-1/networks/0', wire(nic(43, 2))), [404, 'call_unknown']);
      assert.deepEqual(await call('PUT', '/guests/vm-1/networks/43', { mac: 'x' }), [400, 'body_invalid']);
      assert.deepEqual(await call('PUT', '/guests/vm-9/networks/43', wire(nic(43, 2))), [
        404,
        'guest_unknown',
      ]);
      const shown = (await callControl(lab.facts.control_socket, 'GET', '/guests/vm-1')).body;
      assert.deepEqual((shown as { private_interfaces: unknown }).private_interfaces, [
        { network: 41, ...wire(nic(41, 2)) },
        { network: 43, ...wire(nic(43, 2)) },
      ]);
      assert.deepEqual(await call('DELETE', '/networks/43'), [409, 'network_in_use']);
      assert.equal(await call('DELETE', '/guests/vm-1/networks/43', { mac: nic(43, 2).mac }), 204);
      assert.equal(await call('DELETE', '/guests/vm-9/networks/43', { mac: nic(43, 2).mac }), 204);
      assert.equal(
        await call('PUT', '/networks/43', { members: [{ guest: 'vm-1', ...wire(nic(43, 4)) }] }),
        200,
      );
      assert.equal(await call('PUT', '/networks/43', { members: [] }), 200);
      assert.equal(await call('DELETE', '/networks/43'), 204);
    },
  );

  await world.test('the next start of the world makes guests and NICs again', async (t) => {
    await lab.syncNetwork(31, [
      { guest: 'vm-11', nic: nic(31, 2) },
      { guest: 'vm-12', nic: nic(31, 3) },
    ]);
    await lab.stop();
    const again = await startLab(t, { dataDir });
    assert.deepEqual(again.get('vm-11').nics, [nic(31, 2)]);
    assert.equal(await fetchFrom(again, 'vm-11', '10.20.0.3', patientMs), '7');
    assert.equal(await fetchFrom(again, 'vm-14', '10.20.0.2'), 'unreachable');
  });
});
