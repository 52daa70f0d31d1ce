import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenPorts } from './open-ports.ts';

const scanId = '0193a1f0-0000-7000-8000-000000000001';
const [early, late] = ['2026-11-23T08:00:00.000Z', '2026-11-23T08:01:00.000Z'];
const ssh = {
  ...{ transport: 'tcp' as const, port: 22, service: 'ssh', product: 'OpenSSH', version: '9.6p1' },
  ...{ extraInfo: null, method: 'probed' as const, confidence: 10, tunnel: null, cpe: [] },
};

test('NET-2.7.5: a port stays once it was found, and a guess from its number replaces no answer', () => {
  const open = new OpenPorts(scanId);
  open.add(ssh, early);
  open.describe([ssh], late);
  open.describe([{ ...ssh, product: null, version: null, method: 'table', confidence: 3 }], late);
  open.describe([], late);
  const [found] = open.services();
  assert.deepEqual(
    [found!.product, found!.method, found!.first_observed_at, found!.observed_at, found!.scan_id],
    ['OpenSSH', 'probed', early, late, scanId],
  );
  assert.deepEqual(open.ports('tcp'), [22]);
});
