import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { needsRoot, startLab } from './testing/lab-tests.ts';
import { runIp, runTool } from './world/run-tool.ts';

const guest = { name: 'vm-17', mac: '52:54:00:5e:00:11', addresses: [{ address: '203.0.113.17' }] };
/** A busy machine is no closed door. */
const patientMs = 10_000;
const shortMs = 700;

/** What answers a POST with eight bytes: status, path and bytes received; "refused" where nothing does. */
const ask = (url: string, withinMs: number) => [
  process.execPath,
  '-e',
  `fetch('${url}', {method: 'POST', body: 'payload.', signal: AbortSignal.timeout(${withinMs})}).then(async (r) => r.status + ' ' + (await r.text())).catch(() => 'refused').then((text) => process.stdout.write(text, () => process.exit()))`,
];

/** Stands in for a monitor. */
async function startMonitor(t: TestContext, address = '127.0.0.1') {
  const server = createServer(async (request: IncomingMessage, response) => {
    let bytes = 0;
    for await (const piece of request) bytes += (piece as Buffer).length;
    response.writeHead(202).end(`${request.url} ${bytes}`);
  });
  server.listen(0, address);
  await once(server, 'listening');
  const stop = () => new Promise((done) => server.close(done).closeAllConnections());
  t.after(stop);
  return { port: (server.address() as AddressInfo).port, stop };
}

/** A machine on another link of this host, such as one on its network; routes everything to the host. */
async function addNeighbour(t: TestContext, name: string): Promise<(argv: readonly string[]) => string[]> {
  t.after(() => runTool(['ip', 'netns', 'delete', name]));
  await runIp(null, [
    `netns add ${name}`,
    `link add ${name} type veth peer name eth0 netns ${name}`,
    `addr add 100.127.254.1/30 dev ${name}`,
    `link set ${name} up`,
  ]);
  await runIp(name, [
    'addr add 100.127.254.2/30 dev eth0',
    'link set eth0 up',
    'route add default via 100.127.254.1 dev eth0',
  ]);
  return (argv) => ['ip', 'netns', 'exec', name, ...argv];
}

describe('the forwarder of a lab world', needsRoot, () => {
  test('gives the sensor API of a monitor to the hypervisor, nothing else of it, and nothing to others', async (t) => {
    const { port, stop } = await startMonitor(t);
    const lab = await startLab(t, { forwards: [port] });
    await lab.put(guest);
    const inNeighbour = await addNeighbour(t, `svcnb-${lab.facts.world}`);
    const at = (path: string, ofPort = port) => `http://${lab.facts.host_address}:${ofPort}${path}`;
    const plan = '/agent/v1/plan';
    assert.equal(await lab.execInHypervisor(ask(at(plan), patientMs)), `202 ${plan} 8`);
    for (const path of ['/', '/dev/mail/', '/sign-in', '/agent/v1', '/agent/v1/%2e%2e/x', '/agent/v10/plan'])
      assert.match(await lab.execInHypervisor(ask(at(path), patientMs)), /^404 .*not_found/, path);
    const other = port === 1 ? 2 : port - 1;
    assert.equal(await lab.execInHypervisor(ask(at(plan, other), shortMs)), 'refused', 'another port');

    assert.equal(await lab.execInGuest(guest.name, ask(at(plan), shortMs)), 'refused', 'a guest');
    // Not for want of a way: a socket that is bound to the address alone does answer there.
    const open = await startMonitor(t, lab.facts.host_address);
    assert.equal(await runTool(inNeighbour(ask(at(plan, open.port), patientMs))), `202 ${plan} 8`);
    assert.equal(await runTool(inNeighbour(ask(at(plan), shortMs))), 'refused', 'a neighbour of the host');

    await stop();
    assert.equal(await lab.execInHypervisor(ask(at(plan), patientMs)), 'refused', 'a monitor that is down');
  });
});
