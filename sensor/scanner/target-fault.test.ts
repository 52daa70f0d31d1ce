import assert from 'node:assert/strict';
import { test } from 'node:test';
import { targetFault } from './index.ts';

test('NET-2.7.8: a target is scanned only from an address that this host still has at the named interface, and never the host itself', () => {
  const target = { address: '198.51.100.7', interface: 'lo', source_address: '127.0.0.1' };
  assert.equal(targetFault(target), null);
  assert.match(targetFault({ ...target, address: '127.0.0.1' })!, /this host's own address/);
  assert.match(targetFault({ ...target, source_address: '198.51.100.1' })!, /not an address of lo on this/);
  assert.match(targetFault({ ...target, interface: 'absent0' })!, /not an address of absent0 on this host/);
  assert.match(targetFault({ ...target, address: '2001:db8::7' })!, /the other family/);
});
