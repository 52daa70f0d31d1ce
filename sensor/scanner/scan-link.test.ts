import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { collect, ended, insideAddresses, openToolLink, spawnTool } from '#sensor/testing/tool-link.ts';
import type { ScanFindings } from './scan.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));
const listeners = `
const { createServer } = require('node:net');
const { createSocket } = require('node:dgram');
createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.6p1\\r\\n')).listen(22, '::', () => {
  const dns = createSocket('udp6');
  dns.on('message', (query, from) => { query[2] |= 128; query[3] = 5; dns.send(query, from.port, from.address); });
  dns.bind(53, '::', () => console.log('ready'));
});`;

/** What the kernel says of an nmap that a process started; waits for one as long as the process runs. */
async function statusOfNmap(processId: number): Promise<string> {
  const isOurs = (status: string) =>
    /^Name:\s+nmap$/m.test(status) && new RegExp(`^PPid:\\s+${processId}$`, 'm').test(status);
  while (!/^State:\s+Z/m.test(readText(`/proc/${processId}/status`))) {
    const statuses = readdirSync('/proc').map((entry) =>
      /^\d+$/.test(entry) ? readText(`/proc/${entry}/status`) : '',
    );
    const found = statuses.find(isOurs);
    if (found !== undefined) return found;
    if (!existsSync(`/proc/${processId}`)) return '';
    // It runs for seconds, and a look at every process costs milliseconds.
    await wait(50);
  }
  return '';
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** True where nmap and namespaces can be had. On the build machine they must be. */
function canScan(t: TestContext): boolean {
  const can = process.getuid?.() === 0 && existsSync('/usr/bin/nmap') && existsSync('/usr/sbin/ip');
  assert.ok(can || !process.env.CI, 'this test needs root, nmap and iproute2');
  if (!can) t.diagnostic('left out: needs root, nmap and iproute2');
  return can;
}

test("NET-2.7.5: nmap finds and identifies services of a real host by IPv4 and IPv6, without root's rights, and the packets are counted", async (t) => {
  if (!canScan(t)) return;
  const link = openToolLink();
  const services = spawnTool([...link.inside, process.execPath, '-e', listeners]);
  t.after(async () => {
    services.kill('SIGKILL');
    await ended(services);
    link.close();
  });
  await once(services.stdout!, 'data');
  // Not by "ip netns exec": that hides the control groups.
  const outside = ['nsenter', `--net=/run/netns/${link.outside.at(-1)}`];
  const scanOne = async (address: string) => {
    const command = ['svc.ts', 'sensor', 'scan', address, '--json'];
    const scan = spawn(outside[0]!, [...outside.slice(1), process.execPath, ...command], {
      cwd: project,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    scan.stdout.on('data', (piece) => {
      text += piece;
    });
    const said = collect({ stdout: scan.stderr, stderr: scan.stderr } as never);
    const closed = once(scan, 'close');
    // It says which address it scans before it starts nmap.
    await Promise.race([once(scan.stderr, 'data'), closed]);
    const status = await statusOfNmap(scan.pid!);
    const [code] = await closed;
    assert.equal(code, 0, said());
    assert.match(status, /^Uid:(\s+[1-9]\d*){4}$/m);
    assert.match(status, /^CapBnd:\s+0000000000002000$/m);
    assert.match(status, /^NoNewPrivs:\s+1$/m);
    const findings = JSON.parse(text) as ScanFindings;
    assert.deepEqual([findings.state, findings.notes.includes('interrupted')], ['complete', false]);
    const found = findings.services.map((one) => [one.transport, one.port, one.product, one.version]);
    assert.deepEqual(found[0], ['tcp', 22, 'OpenSSH', '9.6p1']);
    assert.deepEqual(
      found.slice(1).map(([transport, port]) => [transport, port]),
      [['udp', 53]],
    );
    assert.ok(findings.packets >= 200, 'each port of both transports was asked');
  };
  await Promise.all([scanOne(insideAddresses[4]), scanOne(insideAddresses[6])]);
});
