// Slow: asks two processes while keys lose their rights, ten times over.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proveRevocation } from './prove-revocation.ts';

test('API-2.1.g, API-2.1.5: a key that loses its right succeeds nowhere from then on, and a cached verdict would be seen', async () => {
  const sound = await proveRevocation({ rounds: 10, processes: 2 });
  assert.equal(sound.lateSuccesses, 0);
  const broken = await proveRevocation({ rounds: 5, processes: 2, bug: 'cached verdicts' });
  assert.ok(broken.lateSuccesses > 0);
});
