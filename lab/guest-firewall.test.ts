// Slow: sends packets through the firewalls of a lab, and waits for those that do not come.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callControl } from './control/index.ts';
import type { Lab } from './index.ts';
import { fetchSeven, makeDataDir, needsRoot, patientMs, startLab } from './testing/lab-tests.ts';
import { addressRecords } from './traffic/internet-plan.ts';
import type { FirewallPlan, FirewallRule } from './world/guest-firewall.ts';

const rule = (more: Partial<FirewallRule>): FirewallRule => ({
  direction: 'inbound',
  action: 'accept',
  protocol: 'tcp',
  ports: null,
  peers: [],
  ...more,
});
const plan = (...rules: FirewallRule[]): FirewallPlan => ({
  inboundPolicy: 'drop',
  outboundPolicy: 'accept',
  rules,
});

/** How long one is waited for that isn't to come. */
const shortMs = 600;

test('firewalls of a lab world', needsRoot, async (world) => {
  const dataDir = makeDataDir(world);
  const lab = await startLab(world, { dataDir });
  for (const last of [11, 12])
    await lab.put({
      name: `vm-${last}`,
      mac: `52:54:00:00:00:${last}`,
      addresses: [{ address: `203.0.113.${last}` }, { address: `2001:db8:113::${last}` }],
    });
  const internet = (at: Lab, origin: string, withinMs = shortMs) => {
    const enter = ['nsenter', `--net=/run/netns/${at.facts.internet_namespace}`];
    return at.execInHypervisor([...enter, ...fetchSeven(origin, withinMs)]).catch(() => 'blocked');
  };
  const guest = (name: string, origin: string, withinMs = shortMs) =>
    lab.execInGuest(name, fetchSeven(origin, withinMs)).catch(() => 'blocked');
  const site = addressRecords.get('www.example.com')!;

  await world.test(
    'API-4.9: what the rules let in gets in, from the internet and from a neighbour, and nothing else',
    async () => {
      assert.equal(await internet(lab, 'http://203.0.113.11', patientMs), '7');
      await lab.setFirewall('vm-11', plan(rule({ ports: '443' })));
      assert.equal(await internet(lab, 'http://203.0.113.11'), 'blocked');
      assert.equal(await internet(lab, 'http://[2001:db8:113::11]'), 'blocked');
      assert.equal(await internet(lab, 'https://203.0.113.11', patientMs), '7');
      assert.equal(await internet(lab, 'https://[2001:db8:113::11]', patientMs), '7');
      assert.equal(await guest('vm-12', 'http://203.0.113.11'), 'blocked');
      assert.equal(await guest('vm-12', 'https://203.0.113.11', patientMs), '7');
      // Its own connections get their answers, and its neighbour is not filtered.
      assert.equal(await guest('vm-11', `http://${site.ipv4}`, patientMs), '7');
      assert.equal(await guest('vm-11', 'http://203.0.113.12', patientMs), '7');
      assert.equal(await internet(lab, 'http://203.0.113.12', patientMs), '7');
    },
  );

  await world.test('the first matching rule decides, by the remote address', async () => {
    await lab.setFirewall(
      'vm-11',
      plan(
        rule({ ports: '80', peers: ['203.0.113.12/32', '2001:db8:113::12/128'] }),
        rule({ ports: '80', action: 'drop' }),
        rule({ ports: '1-65535' }),
      ),
    );
    assert.equal(await guest('vm-12', 'http://203.0.113.11', patientMs), '7');
    assert.equal(await guest('vm-12', 'http://[2001:db8:113::11]', patientMs), '7');
    assert.equal(await internet(lab, 'http://203.0.113.11'), 'blocked');
    assert.equal(await internet(lab, 'https://203.0.113.11', patientMs), '7');
  });

  await world.test('what goes out is filtered too, and two firewalls must both let it through', async () => {
    const blocked = rule({ direction: 'outbound', action: 'drop', ports: '80' });
    await lab.setFirewall('vm-11', { inboundPolicy: 'accept', outboundPolicy: 'accept', rules: [blocked] });
    assert.equal(await guest('vm-11', `http://${site.ipv4}`), 'blocked');
    assert.equal(await guest('vm-11', `https://${site.ipv4}`, patientMs), '7');
    await lab.setFirewall('vm-12', plan());
    assert.equal(await guest('vm-11', 'https://203.0.113.12'), 'blocked');
    await lab.setFirewall('vm-12', plan(rule({ ports: '443' })));
    assert.equal(await guest('vm-11', 'https://203.0.113.12', patientMs), '7');
  });

  await world.test(
    'the control socket sets and clears it, and passes nothing on that it did not understand',
    async () => {
      const call = async (method: string, body?: object) => {
        const answer = await callControl(lab.facts.control_socket, method, '/guests/vm-12/firewall', body);
        return answer.status;
      };
      const body = { inbound_policy: 'drop', outbound_policy: 'accept', rules: [] as object[] };
      assert.equal(await call('PUT', body), 200);
      assert.equal(await internet(lab, 'https://203.0.113.12'), 'blocked');
      for (const bad of [
        { ports: '80; drop' },
        { ports: '99999' },
        { peers: ['0.0.0.0/0 } accept'] },
        { protocol: 'gre' },
        { ports: '80', protocol: 'icmp' },
      ])
        assert.equal(await call('PUT', { ...body, rules: [{ ...rule({}), ...bad }] }), 400);
      assert.equal(await call('DELETE'), 204);
      assert.equal(await call('DELETE'), 204);
      assert.equal(await internet(lab, 'https://203.0.113.12', patientMs), '7');
    },
  );

  await world.test('it outlives the guest’s power and the world’s, and ends with the guest', async (t) => {
    await lab.setFirewall('vm-11', plan());
    await lab.restart('vm-11');
    assert.equal(await internet(lab, 'http://203.0.113.11'), 'blocked');
    await lab.remove('vm-11');
    await lab.put({ name: 'vm-13', mac: '52:54:00:00:00:13', addresses: [{ address: '203.0.113.11' }] });
    assert.equal(await internet(lab, 'http://203.0.113.11', patientMs), '7');
    await lab.setFirewall('vm-13', plan());
    await lab.stop();
    const again = await startLab(t, { dataDir });
    assert.equal(await internet(again, 'http://203.0.113.11'), 'blocked');
    assert.equal(await internet(again, 'http://203.0.113.12', patientMs), '7');
  });
});
