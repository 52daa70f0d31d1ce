import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync, zstdCompressSync } from 'node:zlib';
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
import { type PrintedReading, readInProcess } from '#sensor/testing/read-in-process.ts';
import { lookAtArguments } from './read-arguments.ts';

const folder = mkdtempSync(joinPath(tmpdir(), 'svc-read-'));
after(() => rmSync(folder, { recursive: true }));

const runner = `
  import { Command } from 'commander';
  import { addCommands } from '#sensor/main.ts';
  const program = new Command('sensor');
  addCommands(program);
  await program.parseAsync(process.argv.slice(1), { from: 'user' });
`;

/** Runs the sensor's command line as its own process. */
function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return runOn('', ...args);
}

/** The same of `sensor read`, without a process of its own. */
function read(...args: string[]): Promise<PrintedReading> {
  const { files, options } = lookAtArguments(args)!;
  return readInProcess(files, options);
}

function runOn(input: string | Uint8Array, ...args: string[]) {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', runner, '--', ...args],
    {
      cwd,
      input,
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

test('NET-2.2.3: the JSON has the capture, flows, DNS answers, hosts, conversations and applications', async () => {
  const { status, stdout, stderr } = await read('--json', stored('whole.pcap', pcapFile(frames)));
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

test('tables are for people', async () => {
  const { status, stdout } = await read(stored('tables.pcap', pcapFile(frames)));
  assert.equal(status, 0);
  assert.match(stdout, /^6 packets/);
  assert.match(stdout, /4 IP, 1 not IP, 1 malformed or truncated/);
  assert.match(stdout, /example\.co\.uk +tcp +443/);
});

test('--local defines in and out by the local end', async () => {
  const path = stored('local.pcap', pcapFile(frames));
  const { stdout } = await read(path, '--json', '--local', '203.0.113.9');
  const application = JSON.parse(stdout).applications.find(
    (one: { server_port: number }) => one.server_port === 443,
  );
  assert.deepEqual([application.inbound_bytes, application.outbound_bytes], [hello.length, reply.length]);
  const refused = await read(path, '--local', '203.0.113.9/99');
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /--local takes a prefix/);
});

test('a truncated capture gives the readable part, exit code 0, and a sentence on standard error', async () => {
  const whole = pcapFile(frames);
  const { status, stdout, stderr } = await read(
    '--json',
    stored('cut.pcap', whole.slice(0, whole.length - 4)),
  );
  assert.equal(status, 0);
  assert.equal(JSON.parse(stdout).capture.packets, 5);
  assert.match(stderr, /ends inside a packet after 5 packets/);
});

test('a file that is not a capture and an unsupported link type give exit code 2', async () => {
  const text = await read(stored('text.txt', ascii('just some words in a file')));
  assert.deepEqual([text.status, text.stdout], [2, '']);
  assert.match(text.stderr, /not a capture file/);
  const usb = await read(stored('usb.pcap', pcapFile(frames, { linkType: 189 })));
  assert.deepEqual([usb.status, usb.stdout], [2, '']);
  assert.match(usb.stderr, /link type 189, which is not supported/);
  assert.equal((await read(joinPath(folder, 'missing'))).status, 2);
});

test('filters select by address, prefix, name, port, protocol and time', async () => {
  const path = stored('filters.pcap', pcapFile(frames));
  const of = async (...options: string[]) => JSON.parse((await read('--json', path, ...options)).stdout);
  const flowsWith = async (...options: string[]) =>
    (await of(...options)).flows.map(
      (flow: { transport: string; server: { port: number } }) => `${flow.transport} ${flow.server.port}`,
    );
  const all = ['udp 53', 'tcp 443'];
  assert.deepEqual(await flowsWith(), all);
  assert.deepEqual(await flowsWith('--host', '203.0.113.9'), ['tcp 443']);
  assert.deepEqual(await flowsWith('--host', '203.0.113.0/24'), all);
  assert.deepEqual(await flowsWith('--host', '198.51.100.1'), []);
  assert.deepEqual(await flowsWith('--name', 'EXAMPLE'), ['tcp 443']);
  assert.deepEqual(await flowsWith('--name', '*.example.co.uk'), ['tcp 443']);
  assert.deepEqual(await flowsWith('--name', 'example.*'), ['tcp 443']);
  assert.deepEqual(await flowsWith('--port', '53'), ['udp 53']);
  assert.deepEqual(await flowsWith('--port', '53', '--port', '443'), all);
  assert.deepEqual(await flowsWith('--protocol', 'udp'), ['udp 53']);
  assert.deepEqual(await flowsWith('--protocol', '6', '--host', '203.0.113.53'), []);
  assert.equal((await of('--from', '+0')).capture.packets, 6);
  assert.ok((await of('--from', '+5s')).capture.packets < 6);
  assert.equal((await of('--from', '+5s')).capture.packets + (await of('--to', '+5s')).capture.packets, 6);
  assert.equal((await of('--to', '2023-11-14T22:13:00Z')).capture.packets, 0);
  assert.equal((await of('--from', '22:13:20', '--to', '22:14')).capture.packets, 6);
  const matching = await of('--port', '443');
  assert.deepEqual(matching.hosts.map((host: { ip: string }) => host.ip).toSorted(), [
    '192.0.2.1',
    '203.0.113.9',
  ]);
  assert.deepEqual(matching.dns, []);
  assert.equal(matching.conversations.length, 1);
  assert.equal(matching.applications.length, 1);
});

test('invalid options are refused with a valid example, exit code 2', async () => {
  const path = stored('options.pcap', pcapFile(frames));
  for (const [option, text, sentence] of [
    ['--host', 'example.com', /--host takes an address or a prefix/],
    ['--port', '99999', /--port takes a whole number up to 65535/],
    ['--protocol', 'tpc', /--protocol takes a name such as tcp/],
    ['--from', 'yesterday', /--from takes a time such as 2026-01-31T12:00:00Z/],
    ['--sort', 'size', /--sort takes one of bytes, packets/],
    ['--top', '1.5', /--top takes a whole number/],
  ] as const) {
    const { status, stdout, stderr } = await read(path, option, text);
    assert.deepEqual([status, stdout], [2, ''], option);
    assert.match(stderr, sentence);
  }
});

test('an invalid command line gives exit code 2, help gives 0', () => {
  const incomplete = run('read');
  assert.match(incomplete.stderr, /missing required argument 'file'/);
  assert.equal(incomplete.status, 2);
  assert.equal(run('read', '--hots', '192.0.2.1', 'x.pcap').status, 2);
  assert.equal(run('read', '--help').status, 0);
});

test('several files are one capture, in the order of their packets; one that is not a capture is reported and left out', async () => {
  const parts = [pcapFile(frames.slice(3)), pcapFile(frames.slice(0, 3))].map((bytes, i) =>
    stored(`part${i}.pcap`, bytes),
  );
  const whole = JSON.parse((await read('--json', stored('all.pcap', pcapFile(frames)))).stdout);
  const { status, stdout, stderr } = await read('--json', ...parts, stored('words.txt', ascii('only words')));
  assert.equal(status, 0);
  assert.deepEqual(JSON.parse(stdout), whole);
  assert.match(stderr, /words\.txt is not a capture file/);
});

test('standard input and compressed files are read like files', async () => {
  const bytes = pcapFile(frames);
  const whole = (await read('--json', stored('plain.pcap', bytes))).stdout;
  assert.equal(runOn(bytes, 'read', '--json', '-').stdout, whole);
  assert.equal(runOn(gzipSync(bytes), 'read', '--json', '-').stdout, whole);
  assert.equal((await read('--json', stored('packed.pcap.zst', zstdCompressSync(bytes)))).stdout, whole);
});

test('--minutes adds the traffic of each minute, to the tables and to the JSON; its sum is the total', async () => {
  const path = stored(
    'minutes.pcap',
    pcapFile([...frames, { ...frames[0]!, seconds: frames[0]!.seconds + 90 }]),
  );
  const { capture, minutes } = JSON.parse((await read('--json', '--minutes', path)).stdout);
  const sum = (field: string) =>
    minutes.reduce((total: number, one: Record<string, number>) => total + one[field]!, 0);
  assert.deepEqual(
    [minutes.length, sum('packets'), sum('bytes'), sum('parser_dropped')],
    [2, capture.packets, capture.bytes, capture.parser_dropped],
  );
  assert.equal(minutes[0].minute, '2023-11-14T22:13:00Z');
  assert.match((await read('--minutes', path)).stdout, /Minutes\nminute \(UTC\).*\n2023-11-14 22:13/);
});

test('tables follow --sort and --top, are plain in a pipe, and report malformed and truncated packets', () => {
  const cut = { ...frames[0]!, wireLength: 1500 };
  const path = stored('order.pcap', pcapFile([...frames, cut]));
  const { stdout } = run('read', path, '--top', '1', '--sort', 'name');
  assert.ok(!stdout.includes('\u001b'), 'no colours in a pipe');
  assert.match(stdout, /Flows {2}1 of \d/);
  assert.match(stdout, /… 1 more \(--top 0 or --json lists all\)/);
  assert.match(stdout, /14 % of the packets could not be decoded: their bytes are in no table\./);
  assert.match(stdout, /1 packets? w(as|ere) truncated to at most \d+ bytes/);
});
