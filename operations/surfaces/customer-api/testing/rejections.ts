/** Twenty-seven ways to come without a valid key, each of which has to be answered like every other (API-5.2). */
import { systemActor } from '#operations/accounts/index.ts';
import type { World } from '#operations/testing/create-world.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';

export interface Rejection {
  name: string;
  headers?: readonly (readonly [string, string])[];
  /** Added to the address. */
  query?: string;
  body?: string;
}

export async function createRejections(world: World): Promise<Rejection[]> {
  const customer = await world.createCustomer('Rejected');
  const issue = () => world.createKey(customer);
  const run = (text: string, values: unknown[]) => world.database.pool.query(text, values);
  const key = await issue();
  const [, id, secret] = /^svc_([a-z0-9]+)_(.+)$/.exec(key) as unknown as [string, string, string];
  const idOf = (token: string) => token.split('_')[1]!;
  const revoked = await issue();
  await world.apiKeys.revokeKey(systemActor, idOf(revoked));
  const expired = await issue();
  await run("update api_keys set expires_at = svc_now() - interval '1 second' where key_id = $1", [
    idOf(expired),
  ]);
  const gone = await world.createCustomer('Gone');
  const ofDeactivated = await world.createKey(gone);
  await world.accounts.setPersonActive(systemActor, gone.owner.id, false);
  const member = await world.createCustomer('Left');
  await world.accounts.addMember(systemActor, customer.tenant.organizationId, member.owner.id);
  const ofRemoved = await world.createKey({ owner: member.owner, tenant: customer.tenant });
  await world.accounts.removeMember(systemActor, customer.tenant.organizationId, member.owner.id);
  const unreaching = await world.createKey(customer, 'full', [customer.tenant.id]);
  await run('delete from api_key_tenants where key_id = $1', [idOf(unreaching)]);
  const cookie = await world.signIn(customer.email);
  const bearer = (name: string, token: string): Rejection => ({
    name,
    headers: [['Authorization', `Bearer ${token}`]],
  });
  return [
    { name: 'no header' },
    { name: 'another scheme', headers: [['Authorization', `Basic ${btoa(`${key}:`)}`]] },
    { name: 'scheme alone', headers: [['Authorization', 'Bearer']] },
    { name: 'no scheme', headers: [['Authorization', key]] },
    bearer('two tokens', `${key} ${key}`),
    bearer('a word', 'nonsense'),
    bearer('two parts', `svc_${id}`),
    bearer('no secret', `svc_${id}_`),
    bearer('no id', `svc__${secret}`),
    bearer('another prefix', `svcadm_${id}_${secret}`),
    bearer('upper-case id', `svc_${id.toUpperCase()}_${secret}`),
    bearer('short secret', `svc_${id}_${secret.slice(1)}`),
    bearer('long secret', `svc_${id}_${secret}A`),
    bearer('padded secret', `svc_${id}_${secret}=`),
    bearer('secret in another alphabet', `svc_${id}_${'+'.repeat(43)}`),
    bearer('over 128 bytes', `${key}${'x'.repeat(200)}`),
    bearer('unknown id', mintCredential('svc').token),
    bearer('wrong secret', `svc_${id}_${mintCredential('svc').secret}`),
    bearer('revoked', revoked),
    bearer('expired', expired),
    bearer('deactivated person', ofDeactivated),
    bearer('removed member', ofRemoved),
    bearer('no reachable workspace', unreaching),
    { name: 'session only', headers: [['Cookie', cookie]] },
    { name: 'key in the query', query: `api_key=${key}&authorization=Bearer%20${key}` },
    { name: 'key in the body', body: JSON.stringify({ key, api_key: key, authorization: `Bearer ${key}` }) },
    { name: 'key in a cookie', headers: [['Cookie', `key=${key}; authorization=Bearer ${key}`]] },
  ];
}
