import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpusFolder, hasCorpus } from '#sensor/testing/corpus.ts';
import { createNmapXmlReader, type NmapReport } from './nmap-xml.ts';

interface ExpectedPort {
  protocol: string;
  port: number;
  identified?: {
    name: string;
    product: string;
    version: string;
    extrainfo?: string;
    cpe?: string[];
    tunnel?: string;
  };
}
interface Expected {
  file: string;
  well_formed: boolean;
  complete: boolean;
  requested?: Record<string, number>;
  ports?: ExpectedPort[];
  open?: [string, number][];
}

const skip = !hasCorpus();
const read = (text: string, transport: 'tcp' | 'udp', size = text.length): NmapReport => {
  const reader = createNmapXmlReader(transport);
  for (let i = 0; i < text.length; i += size) reader.write(text.slice(i, i + size));
  return reader.report();
};
const load = (file: string) => readFileSync(join(corpusFolder(), 'nmap', file), 'utf8');

test('NET-2.7.5: recorded outputs: what is open, identified and complete is what is true', { skip }, () => {
  const expected = JSON.parse(load('expected.json')) as Expected[];
  assert.ok(expected.length >= 14);
  for (const one of expected) {
    for (const transport of ['tcp', 'udp'] as const) {
      if (one.requested && one.requested[transport] === undefined) continue;
      // Read in pieces of any size, it says the same.
      const report = read(load(one.file), transport);
      assert.deepEqual(read(load(one.file), transport, 7), report, one.file);
      const open = (one.open ?? []).filter(([protocol]) => protocol === transport).map(([, port]) => port);
      assert.deepEqual(
        report.open.map(({ port }) => port).sort((a, b) => a - b),
        open,
        one.file,
      );
      assert.equal(report.isFinished, one.complete, one.file);
      if (!one.complete) continue;
      assert.equal(report.asked, one.requested![transport], one.file);
      assert.equal(report.answered + report.filtered + report.silent, report.asked, one.file);
      checkIdentified(one, report, transport);
    }
  }
});

function checkIdentified(one: Expected, report: NmapReport, transport: string): void {
  for (const { protocol, port, identified } of one.ports ?? []) {
    const found = report.open.find((row) => row.port === port);
    if (protocol !== transport || !found) continue;
    if (!identified) assert.equal(found.version, null, `${one.file} ${port}`);
    else {
      assert.equal(found.method, 'probed');
      assert.equal(found.product, identified.product ?? null, `${one.file} ${port}`);
      assert.ok(
        found.version === null || identified.version.startsWith(found.version.slice(0, 20)),
        one.file,
      );
      assert.deepEqual(found.cpe, identified.cpe ?? [], one.file);
      assert.equal(found.tunnel, identified.tunnel ?? null, one.file);
    }
  }
}

test('NET-2.7.5: silent UDP is not open, and a guess from the port number names no product', { skip }, () => {
  const udp = read(load('udp-discovery.xml'), 'udp');
  assert.deepEqual([udp.answered, udp.silent, udp.filtered], [4, 2, 0]);
  assert.deepEqual(
    read(load('udp-discovery-plain.xml'), 'udp').open.map(({ port }) => port),
    [53, 123],
  );
  const excluded = read(load('tcp-identify-excluded-9100.xml'), 'tcp').open.find(
    ({ port }) => port === 9100,
  )!;
  assert.deepEqual([excluded.method, excluded.product, excluded.cpe], ['table', null, []]);
});

const run = (ports: string, more = '', end = '<runstats><finished exit="success"/></runstats></nmaprun>') =>
  `<?xml version="1.0"?>\n<!DOCTYPE nmaprun${more}>\n<nmaprun><scaninfo protocol="tcp" numservices="1"/>` +
  `<host starttime="1" endtime="2"><ports>${ports}</ports></host>${end}`;
const port = (service: string, state = 'open', number = 80) =>
  `<port protocol="tcp" portid="${number}"><state state="${state}" reason="syn-ack"/>${service}</port>`;

test('NET-2.7.5: ports 1 and 65,535 are reported, 0 and 65,536 are none', () => {
  const ports = [0, 1, 65_535, 65_536].map((number) => port('', 'open', number));
  assert.deepEqual(
    read(run(ports.join('')), 'tcp').open.map((each) => each.port),
    [1, 65_535],
  );
});

test('answers of servers are one bounded line without control characters; entities are not expanded', () => {
  const text = `&#x9b;[31m${'x'.repeat(300)}`;
  const hostile = `<service name="http" product="a&#10;&#x202e;b" version="${'😀'.repeat(200)}" extrainfo="${text}" method="probed" conf="99"/>`;
  const [found] = read(run(port(hostile)), 'tcp').open;
  assert.equal(found!.product, 'a b');
  assert.equal(found!.version, '😀'.repeat(128));
  assert.equal(found!.extraInfo!.length, 256);
  assert.ok(found!.extraInfo!.startsWith('[31mxxx'));
  assert.equal(found!.confidence, 10);
  const bomb = read(
    run(port('<service name="&e;" method="probed"/>'), ' [<!ENTITY e SYSTEM "file:///etc/passwd">]'),
    'tcp',
  );
  assert.deepEqual([bomb.open, bomb.isFinished], [[], false]);
});

test('NET-2.7.5: a character that XML forbids is replaced and counted, and nothing behind it is lost', () => {
  // As nmap writes the name that a Samba server gave.
  const samba =
    '<service name="netbios-ssn" product="Samba smbd" extrainfo="workgroup: 0M&#xec;&#x1;" method="probed"/>';
  const text = run(port(`${samba}`)).replace(
    '<ports>',
    '<hostnames><hostname name="a\u0001b"/></hostnames><ports>',
  );
  for (const size of [1, 7, text.length]) {
    const report = read(text, 'tcp', size);
    assert.deepEqual([report.isFinished, report.replaced], [true, 2]);
    assert.deepEqual(
      report.open.map(({ product, extraInfo }) => [product, extraInfo]),
      [['Samba smbd', 'workgroup: 0Mì\ufffd']],
    );
  }
  assert.equal(read(run(port('')), 'tcp').replaced, 0);
});

test('NET-3.1: a run is finished only with success, one host that has ended, and a state for each port', () => {
  const fine = run(port(''));
  assert.equal(read(fine, 'tcp').isFinished, true);
  const broken = [
    fine.replace('success', 'error'),
    fine.replace(' endtime="2"', ''),
    fine.replace('numservices="1"', 'numservices="2"'),
    fine.replace('numservices="1"', 'numservices="0"'),
    fine.slice(0, -10),
    `${fine}<nmaprun/>`,
    run(port('').repeat(2)),
    run(port(''), '', '<host endtime="2"/><runstats><finished exit="success"/></runstats></nmaprun>'),
  ];
  for (const text of broken.slice(0, 6)) assert.equal(read(text, 'tcp').isFinished, false, text);
  assert.equal(read(broken[6]!, 'tcp').answered, 1, 'a port counts once');
  assert.equal(read(broken[7]!, 'tcp').isFinished, false, 'two hosts');
  const down = `<nmaprun><scaninfo protocol="tcp" numservices="1"/><runstats><finished exit="success"/><hosts up="0" down="1"/></runstats></nmaprun>`;
  assert.deepEqual([read(down, 'tcp').isFinished, read(down, 'tcp').isHostDown], [false, true]);
  assert.equal(read(fine, 'tcp').isHostDown, false);
  for (const state of ['filtered', 'open|filtered', 'closed|filtered', 'unfiltered', ''])
    assert.deepEqual(read(run(port('', state)), 'tcp').open, [], state);
});

test('NET-2.7.5: a document that is cut or damaged anywhere ends no scan, and opens no port that it does not hold', () => {
  const text = run(port('', 'open', 22) + port('', 'closed', 23)).replace(
    'numservices="1"',
    'numservices="2"',
  );
  assert.equal(read(text, 'tcp').isFinished, true);
  for (let at = 0; at < text.length; at += 1) {
    const cut = read(text.slice(0, at), 'tcp');
    assert.equal(cut.isFinished, false, text.slice(0, at));
    for (const damage of ['<', '"', '&', '\0']) {
      const { open } = read(`${text.slice(0, at)}${damage}${text.slice(at + 1)}`, 'tcp');
      for (const one of [...open, ...cut.open]) assert.notEqual(one.port, 23, `${damage} at ${at}`);
    }
  }
});
