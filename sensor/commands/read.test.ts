import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pcapFile, type StoredFrame } from '#sensor/testing/capture-files.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from '#sensor/testing/frames.ts';

const folder = mkdtempSync(joinPath(tmpdir(), 'svc-read-'));
after(() => rmSync(folder, { recursive: true }));

const runner = `
  import { Command } from 'commander';
  import { addCommands } from '#sensor/main.ts';
  const program = new Command('sensor');
  addCommands(program);
  await program.parseAsync(process.argv.slice(1), { from: 'user' });
`;

/** Runs the sensor's command line as a process of its own. */
function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', runner, '--', ...args],
    {
      cwd,
      encoding: 'utf8',
    },
  );
  return { status, stdout, stderr };
}

function stored(name: string, bytes: Uint8Array): string {
  const path = joinPath(folder, name);
  writeFileSync(path, bytes);
  return path;
}

const web: SegmentOptions = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const resolver: SegmentOptions = { from: '192.0.2.1', fromPort: 5353, to: '203.0.113.53', toPort: 53 };
const query = udp(resolver, dnsMessage({ id: 3, name: 'www.example.co.uk' }));
const answer = udp(
  reverse(resolver),
  dnsMessage({
    id: 3,
    name: 'www.example.co.uk',
    answers: [{ name: 'www.example.co.uk', ttl: 60, address: web.to }],
  }),
);
const hello = tcp(web, Tcp.ack, 2, clientHello({ host: 'www.example.co.uk' }));
const reply = tcp(reverse(web), Tcp.ack, 9, ascii('reply'));
const packets = [query, answer, hello, reply];
const frames: StoredFrame[] = [
  ...packets.map((packet, i) => ({
    bytes: ethernet(packet),
    seconds: 1_700_000_000 + i,
    nanoseconds: 250_000_000,
  })),
  { bytes: ethernet(new Uint8Array(28), { type: 0x0806 }), seconds: 1_700_000_009, nanoseconds: 0 },
  { bytes: new Uint8Array(9), seconds: 1_700_000_008, nanoseconds: 0 },
];

test('NET-2.2.3: the JSON has the capture, flows, DNS answers, hosts, conversations and applications', () => {
  const { status, stdout, stderr } = run('read', '--json', stored('whole.pcap', pcapFile(frames)));
  assert.equal(stderr, '');
  assert.equal(status, 0);
  const document = JSON.parse(stdout);
  assert.deepEqual(document.capture, {
    packets: 6,
    bytes: packets.reduce((sum, packet) => sum + packet.length, 0),
    ip_packets: 4,
    non_ip: 1,
    parser_dropped: 1,
    first_at: '2023-11-14T22:13:20.250000Z',
    last_at: '2023-11-14T22:13:29.000000Z',
    link_type: 1,
  });
  assert.deepEqual(document.flows[1], {
    transport: 'tcp',
    client: { ip: '192.0.2.1', port: 40_000 },
    server: { ip: '203.0.113.9', port: 443 },
    host: 'www.example.co.uk',
    name: 'example.co.uk',
    evidence: 'tls_sni',
    tunnel: null,
    client_packets: 1,
    client_bytes: hello.length,
    server_packets: 1,
    server_bytes: reply.length,
  });
  assert.deepEqual(document.dns, [
    {
      client: { ip: '192.0.2.1', port: 5353 },
      server: { ip: '203.0.113.53', port: 53 },
      name: 'www.example.co.uk',
      cname_chain: ['www.example.co.uk'],
      addresses: [{ address: '203.0.113.9', ttl: 60 }],
      query_seen: true,
    },
  ]);
  assert.deepEqual(
    document.hosts.find((host: { ip: string }) => host.ip === '203.0.113.9'),
    {
      ip: '203.0.113.9',
      rx_bytes: hello.length,
      tx_bytes: reply.length,
      packets: 2,
    },
  );
  assert.deepEqual(document.conversations[1], {
    a: '192.0.2.1',
    b: '203.0.113.9',
    packets_a_to_b: 1,
    bytes_a_to_b: hello.length,
    packets_b_to_a: 1,
    bytes_b_to_a: reply.length,
  });
  assert.deepEqual(document.applications[0], {
    name: 'example.co.uk',
    transport: 'tcp',
    server_port: 443,
    inbound_bytes: reply.length,
    outbound_bytes: hello.length,
  });
});

test('people get tables', () => {
  const { status, stdout } = run('read', stored('tables.pcap', pcapFile(frames)));
  assert.equal(status, 0);
  assert.match(stdout, /^6 packets/);
  assert.match(stdout, /4 IP, 1 not IP, 1 malformed or cut/);
  assert.match(stdout, /example\.co\.uk +tcp +443/);
});

test('--local turns in and out towards the local end', () => {
  const path = stored('local.pcap', pcapFile(frames));
  const { stdout } = run('read', path, '--json', '--local', '203.0.113.9');
  const application = JSON.parse(stdout).applications.find(
    (one: { server_port: number }) => one.server_port === 443,
  );
  assert.deepEqual([application.inbound_bytes, application.outbound_bytes], [hello.length, reply.length]);
  const refused = run('read', path, '--local', '203.0.113.9/99');
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /--local takes a prefix/);
});

test('a cut capture gives what could be read, exit code 0, and a sentence on standard error', () => {
  const whole = pcapFile(frames);
  const { status, stdout, stderr } = run(
    'read',
    '--json',
    stored('cut.pcap', whole.slice(0, whole.length - 4)),
  );
  assert.equal(status, 0);
  assert.equal(JSON.parse(stdout).capture.packets, 5);
  assert.match(stderr, /ends inside a packet after 5 packets/);
});

test('what is no capture and an unsupported link type end with exit code 2', () => {
  const text = run('read', stored('text.txt', ascii('just some words in a file')));
  assert.deepEqual([text.status, text.stdout], [2, '']);
  assert.match(text.stderr, /no capture file/);
  const usb = run('read', stored('usb.pcap', pcapFile(frames, { linkType: 189 })));
  assert.deepEqual([usb.status, usb.stdout], [2, '']);
  assert.match(usb.stderr, /link type 189, which is not supported/);
  assert.equal(run('read', joinPath(folder, 'missing')).status, 2);
});
