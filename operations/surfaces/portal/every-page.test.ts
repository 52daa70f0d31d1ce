/** Walks the portal as an owner does, by its links, and holds every page to what all of them promise. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { projectedService, projectionOf } from '#operations/testing/projection-of.ts';
import { scanOf } from '#operations/testing/scan-of.ts';

let world: World;
let cookie: string;
const pages = new Map<string, string>();

before(async () => {
  world = await createWorld({
    ...{
      providerName: 'Kestrel Cloud',
      providerAccent: '#b3261e',
      providerSupport: 'mailto:help@kestrel.example',
    },
    providerTerms: 'https://kestrel.example/terms',
  });
  const customer = await world.createCustomer('Walker');
  const { tenant, owner } = customer;
  await world.accounts.createTenant(systemActor, { organizationId: tenant.organizationId, name: 'Staging' });
  const network = { tenantId: tenant.id, name: 'backend', cidr: '10.20.0.0/24' };
  const { id: networkId } = await world.networks.createNetwork(systemActor, network);
  await world.jobs.drain();
  const order = { tenantId: tenant.id, plan: 'small', image: 'debian-12', name: 'web-1', networkId };
  const { serverId } = await world.ordering.createServer(systemActor, order);
  await world.jobs.drain();
  await world.backdate(serverId, '1 day');
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  await world.deliverIncidents(incidentOf(allocation!.address));
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const { requests } = await world.protectScans.request(actor, serverId);
  const { id: requestId } = requests.find((each) => each.allocationId === allocation!.id)!;
  const { deliver, sender } = await createScanMonitor(world);
  await deliver(scanOf(allocation!, { ports: [22, 80], endedSecondsAgo: 90, request_id: requestId }));
  await deliver(scanOf(allocation!, { ports: [22], profile: 'common', endedSecondsAgo: 1 }));
  const service = projectedService();
  const packaged = projectedService({ port: 80, assessment: 'unable', reason: 'distribution_package' });
  await world.protectFindings.receive(sender, {
    ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId] },
    projections: [projectionOf(allocation!, { services: [service, packaged] })],
  });
  await world.createKey(customer);
  await world.saveCard(tenant);
  await world.accounts.inviteMember(systemActor, tenant.organizationId, 'invited@walker.test');
  const { endpointId } = await world.webhooks.createEndpoint(actor, {
    organizationId: tenant.organizationId,
    tenantId: null,
    url: 'https://example.com/',
    description: '',
    eventTypes: ['key.created'],
  });
  await world.webhooks.sendTest(actor, endpointId);
  cookie = await world.signIn(customer.email);
  await walk('/client/');
});
after(() => world[Symbol.asyncDispose]());

const hrefsOf = (page: string) =>
  [...page.matchAll(/\shref="(\/client\/[^"#]*)/g)].map((match) => match[1]!.replaceAll('&amp;', '&'));

/** One page of each kind of query is enough: sorting, ranges and months lead on for ever. */
const kindOf = (href: string) => href.replace(/=[^&]*/g, '');
const walked = new Set<string>();

async function walk(path: string): Promise<void> {
  const answer = await fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie } });
  assert.equal(answer.status, 200, path);
  if (!(answer.headers.get('content-type') ?? '').startsWith('text/html')) return void answer.body?.cancel();
  const page = await answer.text();
  pages.set(path, page);
  if (path.includes('?')) return;
  for (const href of hrefsOf(page)) {
    if (walked.has(kindOf(href))) continue;
    walked.add(kindOf(href));
    await walk(href);
  }
}

const contentOf = (page: string, element: string) =>
  [...page.matchAll(new RegExp(`<${element}[\\s>].*?</${element}>`, 'gs'))].map((match) => match[0]);

const attributeOf = (tag: string, name: string) => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];

const kindOfPath = (path: string) => path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, '{id}');

test('the walk by links finds every kind of page, and no link leads nowhere', () => {
  const kinds = new Set([...pages.keys()].map((path) => kindOfPath(path.split('?')[0]!)));
  for (const kind of [
    '/client/',
    '/client/servers/new',
    '/client/servers/{id}',
    '/client/servers/{id}/networks',
    '/client/servers/{id}/firewall',
    '/client/servers/{id}/traffic',
    '/client/servers/{id}/settings',
    '/client/servers/{id}/protect',
    '/client/servers/{id}/protect/incidents',
    '/client/servers/{id}/protect/incidents/{id}',
    '/client/servers/{id}/protect/findings',
    '/client/servers/{id}/protect/findings/{id}.{id}.{id}.{id}/tcp-{id}',
    '/client/servers/{id}/protect/findings/{id}.{id}.{id}.{id}/tcp-{id}/CVE-{id}-{id}',
    '/client/traffic/',
    '/client/networks/',
    '/client/networks/{id}',
    '/client/addresses/',
    '/client/developer/',
    '/client/developer/usage/',
    '/client/developer/ssh-keys/',
    '/client/developer/webhooks/',
    '/client/developer/webhooks/{id}',
    '/client/developer/webhooks/{id}/deliveries/{id}',
    '/client/developer/docs/',
    '/client/billing/',
    '/client/settings/',
  ])
    assert.ok(kinds.has(kind), `${kind} is linked from nowhere`);
});

test('every page has one heading, a title of its own, a place in the navigation, and no id twice', () => {
  const titles = new Map<string, string>();
  for (const [path, page] of pages) {
    assert.equal(contentOf(page, 'h1').length, 1, `${path}: one heading`);
    const title = contentOf(page, 'title')[0]!;
    const place = path.split('?')[0]!;
    assert.equal(titles.get(title) ?? place, place, `${path} and another page are both called ${title}`);
    titles.set(title, place);
    assert.match(page, /<nav id="navigation"[\s\S]*?aria-current="page"[\s\S]*?<\/nav>/, `${path}: place`);
    assert.match(
      page,
      /<nav class="breadcrumb"[\s\S]*?aria-current="page"[\s\S]*?<\/nav>/,
      `${path}: crumbs`,
    );
    const ids = [...page.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]!);
    assert.deepEqual(
      ids.filter((id, index) => ids.indexOf(id) !== index),
      [],
      `${path}: ids`,
    );
  }
});

test('pages, mails and the reference speak of the provider alone, and link its support and terms', async () => {
  const signedOut = await Promise.all(
    ['/', '/sign-in', '/reset-password', '/docs/api/', '/docs/api/servers/', '/no-such-page'].map(
      async (path) => {
        const answer = await fetch(`${world.url}${path}`, { headers: { accept: 'text/html' } });
        return [path, await answer.text()] as const;
      },
    ),
  );
  for (const [path, page] of [...pages, ...signedOut]) {
    const words = page.replaceAll(/<style.*?<\/style>|<[^>]*>/gs, ' ');
    assert.doesNotMatch(words, /\bsvc\b(?!_)/i, path);
    assert.match(words, /Kestrel Cloud/, path);
    assert.match(page, /href="mailto:help@kestrel\.example"[^>]*>Support</, path);
    assert.match(page, /href="https:\/\/kestrel\.example\/terms"[^>]*>Terms</, path);
  }
  const [invitation] = await world.mailsTo('invited@walker.test');
  assert.doesNotMatch(`${invitation!.subject}\n${invitation!.text}`, /\bsvc\b(?!_)/i);
  assert.match(invitation!.text, /Questions\? help@kestrel\.example\s*$/);
  const stylesheet = /href="([^"]*pages\.css)"/.exec(pages.get('/client/')!)![1]!;
  const css = await (await fetch(`${world.url}${stylesheet}`)).text();
  assert.match(css, /--accent:light-dark\(#b3261e,/);
});

test('every control has a label, and what describes it is there', () => {
  for (const [path, page] of pages) {
    for (const [tag] of page.matchAll(/<(?:input|select|textarea)\s[^>]*>/g)) {
      if (attributeOf(tag, 'type') === 'hidden') continue;
      const id = attributeOf(tag, 'id');
      const isLabelled =
        attributeOf(tag, 'aria-label') !== undefined ||
        page.includes(`<label for="${id}"`) ||
        new RegExp(`<label[^>]*>${tag.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`).test(page);
      assert.ok(isLabelled, `${path}: ${tag}`);
      for (const other of attributeOf(tag, 'aria-describedby')?.split(' ') ?? [])
        assert.ok(page.includes(`id="${other}"`), `${path}: nothing is called ${other}`);
    }
    for (const button of contentOf(page, 'button'))
      assert.ok(/>[^<>]*\S[^<>]*</.test(button) || /aria-label="[^"]+"/.test(button), `${path}: ${button}`);
  }
});

test('every form that changes something carries the session’s token, and without it is refused', async () => {
  const actions = new Set<string>();
  for (const [path, page] of pages) {
    for (const form of contentOf(page, 'form')) {
      if (!/^<form[^>]*method="post"/.test(form)) continue;
      assert.match(form, /name="csrf_token" value="[^"]{20,}"/, `${path}: ${form.slice(0, 120)}`);
      for (const match of form.matchAll(/\s(?:form)?action="([^"]+)"/g)) actions.add(match[1]!);
    }
  }
  assert.ok(actions.size > 20, `${actions.size} forms`);
  for (const action of actions) {
    const answer = await fetch(`${world.url}${action}`, {
      method: 'POST',
      headers: { accept: 'text/html', cookie },
      body: new URLSearchParams({ name: 'x' }),
      redirect: 'manual',
    });
    assert.equal(answer.status, 403, action);
  }
});
