import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readNmapEvidence } from './read-evidence.ts';

test('NET-2.6: a file of nmap with characters that XML forbids is read to its end, and they are counted', () => {
  const port = (number: number, service: string) =>
    `<port protocol="tcp" portid="${number}"><state state="open"/><service method="probed" conf="10" ${service}/></port>`;
  const samba = port(445, 'product="Samba smbd" extrainfo="workgroup: 0M&#xec;&#x1;"');
  const ssh = port(22, 'product="OpenSSH" version="9.6p1"');
  const xml = `<?xml version="1.0"?><nmaprun><host><address addr="203.0.113.1" addrtype="ipv4"/><ports>${samba}${ssh}</ports></host></nmaprun>`;
  const counts: number[] = [];
  const found = readNmapEvidence(xml, (count) => counts.push(count));
  assert.deepEqual(
    found.map(({ port: number, evidence }) => [number, evidence.product, evidence.extraInfo]),
    [
      [445, 'Samba smbd', 'workgroup: 0Mì\ufffd'],
      [22, 'OpenSSH', null],
    ],
  );
  assert.deepEqual(counts, [1]);
});
