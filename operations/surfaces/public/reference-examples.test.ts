/** Every call of the reference, as it is printed for the shell and for the client, against this installation. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createClient } from '#clients/typescript/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage } from '#operations/catalog/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { switchViews } from '#operations/testing/switch-views.ts';

const run = promisify(execFile);
const entities: Record<string, string> = {
  '&quot;': '"',
  '&#39;': "'",
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
};

/** The examples of each call, by its id and in the order of the page. */
async function readExamples(url: string): Promise<Map<string, { curl: string; typescript: string }>> {
  const get = async (path: string) =>
    (await fetch(`${url}${path}`, { headers: { accept: 'text/html' } })).text();
  const first = await get('/docs/api/');
  const paths = new Set([...first.matchAll(/href="(\/docs\/api\/[a-z-]+\/)"/g)].map(([, path]) => path!));
  const found = new Map<string, { curl: string; typescript: string }>();
  for (const path of paths)
    for (const [, id, section] of (await get(path)).matchAll(
      /<section class="operation" id="(\w+)">(.*?)<\/section>/gs,
    )) {
      const codes = [...section!.matchAll(/<code[^>]*>([^<]*)<\/code><\/pre>/g)].map(([, code]) =>
        code!.replace(/&(?:quot|#39|lt|gt|amp);/g, (entity) => entities[entity]!),
      );
      const [curl, typescript] = [
        codes.find((code) => code.startsWith('curl')),
        codes.find((code) => code.includes('api.')),
      ];
      found.set(id!, { curl: curl!, typescript: typescript! });
    }
  return found;
}
/** In this order each finds what it needs; those that take something away come last. */
const order = [
  ...[
    'cancelAction',
    'readAction',
    'listTenants',
    'readKey',
    'readAccount',
    'updateAccount',
    'readUsage',
    'createServer',
    'listServers',
    'readServer',
    'updateServer',
  ],
  ...['rebuildServer', 'resizeServer', 'resetPassword', 'rescueServer', 'unrescueServer'],
  ...['attachIso', 'detachIso', 'openConsole'],
  ...[
    'createSnapshot',
    'listSnapshots',
    'listServerSnapshots',
    'readSnapshot',
    'restoreSnapshot',
    'deleteSnapshot',
  ],
  ...['actOnServer', 'listServerActions', 'readServerBandwidth', 'readServerFirewall'],
  ...['readServerTraffic', 'listServerIncidents', 'listServerPorts', 'scanServerPorts', 'listServerFindings'],
  ...['ignoreServerFinding', 'endFindingIgnore'],
  ...['createNetwork', 'listNetworks', 'readNetwork', 'changeNetwork', 'syncNetwork'],
  ...['listPlans', 'readPlan', 'listImages', 'readImage', 'listLocations', 'readLocation', 'readPrices'],
  ...['createSshKey', 'listSshKeys', 'readSshKey', 'updateSshKey', 'deleteSshKey'],
  ...['replaceServerFirewall', 'addFirewallRule', 'replaceFirewallRule', 'removeFirewallRule'],
  ...['createApiKey', 'listApiKeys', 'readApiKey', 'revokeApiKey', 'listLedger', 'listMembers'],
  ...['createWebhook', 'listWebhooks', 'readWebhook', 'updateWebhook', 'testWebhook'],
  ...['listWebhookDeliveries', 'replayWebhookDelivery', 'deleteWebhook'],
  ...['reserveAddress', 'listAddresses', 'readAddress', 'updateAddress'],
  ...['attachAddress', 'detachAddress', 'releaseAddress'],
  ...['setReverseDns', 'readReverseDns', 'deleteReverseDns'],
  ...['attachServer', 'listServerNetworks', 'detachServer', 'deleteNetwork', 'destroyServer'],
];

for (const language of ['curl', 'typescript'] as const)
  test(`every example of the reference does what it says, as printed: ${language}`, async () => {
    await using world = await createWorld();
    const customer = await world.createCustomer('Reader');
    const key = await world.createKey(customer);
    // The ids of the examples.
    await world.database.pool.query(`alter sequence servers_id_seq restart 48211;
      alter sequence private_networks_id_seq restart 31; alter sequence server_actions_id_seq restart 70122;
      alter sequence ssh_keys_id_seq restart 17; alter sequence reserved_addresses_id_seq restart 54; alter sequence server_snapshots_id_seq restart 86; alter sequence firewall_rules_id_seq restart 900;
      alter sequence webhook_endpoints_id_seq restart 3; alter sequence webhook_deliveries_id_seq restart 5120;
      insert into api_keys (key_id, digest, name, scope, organization_id, person_id, tenant_access)
      select 'k3v9x2m7q8w1z5t4', digest, name, scope, organization_id, person_id, tenant_access from api_keys`);
    const { serverId } = await world.deploy(customer.tenant, 'reader');
    await ensureImage(world.database.db, {
      slug: 'rescue',
      name: 'Rescue',
      family: 'debian',
      kind: 'rescue',
    });
    await ensureImage(world.database.db, { slug: 'tools', name: 'Tools', family: 'windows', kind: 'iso' });
    world.dns.lead('web-1.example.net', '203.0.113.10');
    await switchViews(world, customer, serverId, true);
    await world.servers.changePower(systemActor, null, serverId, { command: 'reboot' });
    const examples = await readExamples(world.url);
    const api = createClient({ url: world.url, key, retriesMax: 0 });
    const env = { PATH: process.env.PATH!, URL: world.url, KEY: key };
    const ways = {
      async curl(code: string) {
        const { stdout } = await run('sh', ['-c', `${code} --silent --write-out '\n%{http_code}'`], { env });
        const [, body, status] = /^(.*)\n(\d+)$/s.exec(stdout)!;
        if (!status!.startsWith('2')) throw new Error(`${status}: ${body}`);
      },
      async typescript(code: string) {
        // biome-ignore lint/complexity/useLiteralKeys: no name for the constructor.
        const AsyncFunction = (async () => {})['constructor'] as new (
          ...text: string[]
        ) => (api: unknown) => Promise<void>;
        await new AsyncFunction('api', code)(api);
      },
    };
    const failures: string[] = [];
    assert.deepEqual([...examples.keys()].sort(), order.toSorted());
    for (const id of order) {
      await ways[language](examples.get(id)![language]).catch((error: unknown) =>
        failures.push(`${id}: ${error}`),
      );
      await world.jobs.drain();
    }
    // Its finding is one that only a check of this installation would have found.
    const [missing, ...others] = failures;
    assert.match(missing!, /^ignoreServerFinding: .*(no such finding|ValidationError)/s);
    assert.deepEqual(others, []);
  });
