/** What tests of networks begin with. */
import assert from 'node:assert/strict';
import type { World } from '#operations/testing/create-world.ts';
import type { Answer, Call } from './client.ts';

export async function customerOf(world: World, name: string) {
  const customer = await world.createCustomer(name);
  return { ...customer, key: await world.createKey(customer) };
}

export async function networkOf(call: Call, key: string, body: object): Promise<Answer['body']> {
  const answer = await call('POST', '/api/v2/networks', { key, body: { name: 'backend', ...body } });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}
