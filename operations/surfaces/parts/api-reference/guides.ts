/** What one reads before the first call. A guide about something that no call of the document has is left out. */
import type { Catalog } from '#operations/catalog/index.ts';
import {
  type Content,
  cellColumn,
  codeBlock,
  codeColumn,
  formatCount,
  formatMoney,
  html,
  link,
  prose,
  table,
} from '#service-kit/pages/index.ts';
import type { Operation, ReferenceDocument } from './document.ts';
import type { Offered } from './example.ts';

/** This installation's limits and prices. */
export interface ApiFacts {
  /** Public URL of the API; null when it is not configured. */
  origin: string | null;
  requestsPerMinute: number;
  deploysPerHour: number;
  includedPerMonth: number;
  overageUnitRequests: number;
  overageRateQuanta: number;
  /** What examples order. */
  catalog: Pick<Catalog, 'listPlans' | 'listImages' | 'listLocations'>;
}

export interface Guide {
  id: string;
  title: string;
  content: Content;
}

interface GuideOptions {
  base: string;
  facts: ApiFacts;
  createKeyHref: string | null;
  offered: Offered;
}

export function guidesOf(document: ReferenceDocument, options: GuideOptions): Guide[] {
  const operations = document.resources.flatMap((resource) => resource.operations);
  const { facts } = options;
  const guides: (Guide | null)[] = [
    startGuide(options),
    keyGuide(options),
    workspaceGuide,
    listGuide(facts),
    takes(operations, 'header', 'Idempotency-Key') ? idempotencyGuide : null,
    waitingGuide(operations),
    operations.some(({ id }) => id === 'readServerTraffic') ? observationGuide(facts.origin) : null,
    operations.some(({ id }) => id === 'listServerIncidents') ? attackGuide(facts.origin) : null,
    rateGuide(facts),
    meteringGuide(facts),
    errorGuide,
    cachingGuide,
    webhookGuide(options.base),
    clientGuide(options.offered, options.base),
    switchGuide(operations, options.base),
    versionGuide(options.base),
  ];
  return guides.filter((guide) => guide !== null);
}

const paragraph = (text: string) => html`<p>${prose(text)}</p>`;

function takes(operations: readonly Operation[], place: string, name: string): boolean {
  return operations.some((operation) =>
    operation.parameters.some((one) => one.in === place && one.name.toLowerCase() === name.toLowerCase()),
  );
}

function startGuide({ facts, createKeyHref, offered }: GuideOptions): Guide {
  const origin = facts.origin ?? '$URL';
  const key =
    createKeyHref === null
      ? paragraph('Put an API key into `KEY`.')
      : html`<p>${link(createKeyHref, 'Create a key')}${prose(' and put it into `KEY`. It is shown once.')}</p>`;
  const deploy = `curl -X POST "${origin}/api/v2/servers" \\
  -H "Authorization: Bearer $KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify({ plan: offered.plan.slug, image: offered.image.slug, location: offered.location.slug })}'`;
  return {
    id: 'start',
    title: 'Start',
    content: [
      key,
      codeBlock({ label: 'Deploy a server', code: deploy }),
      paragraph(
        'The answer carries `root_password`, only this once, and the server’s `id`. Read the server until its `status` is `running`; from then on it is reachable under its `public_ips`.',
      ),
      codeBlock({
        label: 'Read it',
        code: `curl "${origin}/api/v2/servers/48211" \\\n  -H "Authorization: Bearer $KEY"`,
      }),
    ],
  };
}

function keyGuide({ createKeyHref }: GuideOptions): Guide {
  return {
    id: 'authentication',
    title: 'Keys',
    content: [
      paragraph(
        'Send your key in one header: `Authorization: Bearer svc_…`. Nothing else is accepted: no cookie, no query parameter, no field of a body.',
      ),
      paragraph(
        'A `read` key may use `GET` only, a `full` key everything. A key reaches all workspaces of its organization, or the selected ones. It may expire, and it can be revoked at any time, which holds from the next call on.',
      ),
      paragraph(
        'Every invalid key gets the same `401`: unknown, expired or revoked. To find keys that were published by mistake, look for `svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}`.',
      ),
      createKeyHref !== null && html`<p>${link(createKeyHref, 'Keys of your organization')}</p>`,
    ],
  };
}

const workspaceGuide: Guide = {
  id: 'workspaces',
  title: 'Workspaces',
  content: [
    paragraph(
      'A workspace has its own servers, networks and account. Name one with `tenant` in the query, `tenant` in the JSON body, or the header `X-Tenant-Id`, by id or slug. Without a name a call acts on the default workspace of its key; `X-Tenant-Id` of the answer says which one it was.',
    ),
    paragraph(
      'Two names that differ are a `400`. A workspace that the key does not reach is a `404`, as if it did not exist. What belongs to another account is never told apart from what does not exist.',
    ),
  ],
};

const listGuide = (facts: ApiFacts): Guide => ({
  id: 'pagination',
  title: 'Lists and pages',
  content: [
    paragraph(
      'A list is `{"servers": […], "pagination": {…}}`. While `has_more` is true, ask again with `cursor` set to `next_cursor`; the header `Link` has the same as a whole address. `limit` is 50 unless you say otherwise, at most 200. Filters stay in the query.',
    ),
    codeBlock({
      label: 'The second page',
      code: `curl "${facts.origin ?? '$URL'}/api/v2/servers?status=running&limit=50&cursor=$NEXT" \\\n  -H "Authorization: Bearer $KEY"`,
    }),
  ],
});

const idempotencyGuide: Guide = {
  id: 'idempotency',
  title: 'Safe retries',
  content: [
    paragraph(
      'Every create is a new order. When an answer is lost on the way, send the call again with the same `Idempotency-Key` and the same body: you get the first answer again, `root_password` included, with `Idempotent-Replayed: true`, and nothing is ordered twice. A key is remembered for 24 hours.',
    ),
    paragraph(
      'The same key with another body is a `422` (`idempotency_key_reused`); while the first call is still running it is a `409` (`idempotency_in_progress`). The TypeScript client sends a key of its own with every create.',
    ),
  ],
};

function waitingGuide(operations: readonly Operation[]): Guide {
  const canPrefer = takes(operations, 'header', 'Prefer');
  return {
    id: 'waiting',
    title: 'Waiting for things',
    content: [
      paragraph(
        'Changes of a server answer at once with an action. It is over when its `status` is `success` or `error`; meanwhile the server is `locked`, and another change is a `409` (`server_busy`) with `Retry-After`. A harder command does not wait: `stop` and `reset` end a shutdown or a reboot, and destroying the server ends every power action and an order whose provisioning has not begun.',
      ),
      canPrefer
        ? paragraph(
            'Instead of asking again and again, send `Prefer: wait=20`: the answer then comes when the action is over, or after that many seconds (at most 30). One counted request replaces dozens.',
          )
        : paragraph('Read the server every two seconds or slower, or let a webhook tell you.'),
    ],
  };
}

function rateGuide(facts: ApiFacts): Guide {
  return {
    id: 'rate-limits',
    title: 'Rate limits',
    content: [
      paragraph(
        `Each key may make ${formatCount(facts.requestsPerMinute)} requests within any minute, and each account may order ${formatCount(facts.deploysPerHour)} servers within any hour. One busy program does not slow the others: the minute belongs to the key.`,
      ),
      paragraph(
        '`RateLimit` says what is left and in how many seconds it renews, `RateLimit-Policy` what the limits are, each by name. Over the limit the answer is a `429` with `Retry-After` in seconds.',
      ),
      codeBlock({
        label: 'Headers',
        canCopy: false,
        code: `RateLimit-Policy: "key";q=${facts.requestsPerMinute};w=60\nRateLimit: "key";r=${facts.requestsPerMinute - 3};t=42`,
      }),
    ],
  };
}

function meteringGuide(facts: ApiFacts): Guide {
  const price = formatMoney(facts.overageRateQuanta, 'USD');
  return {
    id: 'metering',
    title: 'What is counted',
    content: [
      paragraph(
        `${formatCount(facts.includedPerMonth)} requests of an account are free in each UTC month; further ones cost ${price} per ${formatCount(facts.overageUnitRequests)} and are taken from the credit later on. Going over never refuses a call.`,
      ),
      paragraph(
        'Counted is every call that passed its key, its minute and the gate of its account, also when its own answer is a `404` or a `402`. Not counted: a `401`, a `429` of the key’s minute, a locked account, a read key that tries to write, `OPTIONS`.',
      ),
      paragraph(
        'Counted answers carry `X-Api-Quota-Limit`, `X-Api-Quota-Remaining` (never below 0) and `X-Api-Quota-Used`, this call included.',
      ),
    ],
  };
}

const errorGuide: Guide = {
  id: 'error-handling',
  title: 'When a call fails',
  content: [
    codeBlock({
      label: 'An error',
      canCopy: false,
      code: JSON.stringify(
        {
          error: {
            code: 'conflict',
            reason: 'server_busy',
            message: 'Another action of this server is running. Wait until it has finished.',
            request_id: 'req_01JD3Z6Q4T0V9N8K2M5B7C1XWE',
            retryable: true,
            doc_url: '/docs/api/#error-server_busy',
            details: { action_id: 70_123 },
          },
        },
        null,
        2,
      ),
    }),
    paragraph(
      '`code` is one of a closed list, `reason` says which case it was, `retryable` whether the same call may succeed later. A `422` names every faulty field in `fields`; unknown fields are refused, with the name that was probably meant.',
    ),
  ],
};

const cachingGuide: Guide = {
  id: 'caching',
  title: 'Conditional requests',
  content: paragraph(
    'A read carries an `ETag`. Send it back as `If-None-Match`: when nothing has changed the answer is a `304` without a body. Send it as `If-Match` with a change: when another caller changed the server or network meanwhile (its name, host name, description, labels, networks or firewall; of a server also its plan, disk, root password and addresses) the answer is a `412` (`etag_mismatch`), and nothing was done. What the platform does, such as a server that starts to run, is no change in this sense. With a read, `If-Match` answers that `412` unless what is there is the version that it names. What counts its own call (`/key`, `/account`, `/usage`) has no tag. Plans, images, locations and prices may be kept for five minutes (`Cache-Control`); `dry_run` of a deployment says the price of this moment.',
  ),
};

function webhookGuide(base: string): Guide {
  return {
    id: 'webhooks',
    title: 'Webhooks',
    content: [
      html`<p>${prose('We tell your own server what happened, as Standard Webhooks: `POST` with a small JSON body, signed with the endpoint’s secret. ')}${link(`${base}#events`, 'All events')}</p>`,
      codeBlock({
        label: 'A delivery',
        canCopy: false,
        code: `webhook-id: msg_0d9f6c0f7c1e4f0e9d0a3b5c7e9f1a2b
webhook-timestamp: 1763716800
webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=

{"type":"server.provisioned","timestamp":"2026-11-21T10:00:00.000Z",
 "data":{"server_id":48211,"tenant_id":12,"href":"/api/v2/servers/48211?tenant=12"}}`,
      }),
      paragraph(
        'The signature is the base64 of an HMAC-SHA256 over `id.timestamp.body`, keyed with the bytes behind `whsec_`. Compare it before you read the body, and refuse timestamps older than five minutes. While a secret is being changed there are two signatures: one that fits is enough.',
      ),
      paragraph(
        'Answer with any 2xx within 15 seconds. Anything else is tried again over three days with growing pauses; `410` disables the endpoint. The same event may arrive twice, and late: `webhook-id` tells what you have seen, and `href` has the present state.',
      ),
    ],
  };
}

const clientGuide = ({ plan, image, location }: Offered, base: string): Guide => ({
  id: 'client',
  title: 'Clients',
  content: [
    html`<p>${prose('The clients are made from the same document as this reference. They have every call, wait and try again where that is safe, and walk through pages. ')}${link(`${base}clients/`, 'Download a client')}</p>`,
    codeBlock({
      label: 'TypeScript',
      code: `import { createClient } from 'virtual-servers-client';

const api = createClient({ url: process.env.URL!, key: process.env.KEY! });
const server = await api.createServer({ plan: '${plan.slug}', image: '${image.slug}', location: '${location.slug}' });
await api.waitForServer(server.id, 'running');
for await (const one of api.listServers({ status: 'running' })) console.log(one.name);`,
    }),
  ],
});

function versionGuide(base: string): Guide {
  return {
    id: 'versions',
    title: 'Versions',
    content: [
      paragraph(
        '`/api/v2` is the current version. `/api/v1` has the same calls for existing programs: it always acts on the first workspace that the key reaches and ignores one that is named. New fields and new reasons may appear at any time; what is documented stays.',
      ),
      html`<p>${link('/docs/api/openapi.json', 'OpenAPI 3.1 document')}${prose(' for generators and tools. ')}${link(`${base}calls/`, 'All calls')}</p>`,
    ],
  };
}

/** `origin` is where the API stands; null when it is not configured. */
const observationGuide = (origin: string | null) => ({
  id: 'observation',
  title: 'Traffic over time',
  content: [
    paragraph(
      '`GET /servers/{id}/traffic` has the numbers of the Traffic page: bits and packets per second of the server’s public addresses, as they were counted at the hypervisor. Every step of the range is a point.',
    ),
    codeBlock({
      label: 'The last 24 hours in steps of 5 minutes, with the applications',
      code: `curl "${origin ?? '$URL'}/api/v2/servers/48211/traffic?range=24h&applications=yes" \\\n  -H "Authorization: Bearer $KEY"`,
    }),
    paragraph(
      'Null means unknown: the minute was not observed, or has not arrived yet. Draw a gap, and do not count it as zero. Minutes arrive one to two minutes after their end; a late minute changes its point afterwards, for up to 24 hours.',
    ),
    paragraph(
      'To follow a server, read the last minutes once a minute without `from` and `to`. For charts of days and weeks, take longer steps: one call has at most 1,500 points. A range that has passed keeps its `ETag` while no late minute arrives.',
    ),
    codeBlock({
      label: 'TypeScript',
      code: `const traffic = await api.readServerTraffic(48211, {
  step: 'hour',
  from: '2026-11-15T00:00:00Z',
  to: '2026-11-22T00:00:00Z',
});
for (const point of traffic.points)
  console.log(point.timestamp, point.inbound_bps ?? 'unknown', point.outbound_bps ?? 'unknown');`,
    }),
    paragraph(
      '`provider_scan_inbound_bytes` and `provider_scan_outbound_bytes` are the part of a point that our own port scans of the server caused. All totals have it; applications, `expected_bps` and the bandwidth pool do not.',
    ),
    paragraph(
      '`dropped_inbound_bytes` and `dropped_outbound_bytes` are what the hypervisor dropped of attacks on the server and by it. They are in no other number: `inbound_bytes` and `outbound_bytes` are what was delivered, and only that counts against the bandwidth pool.',
    ),
    paragraph(
      'For invoices use `GET /servers/{id}/bandwidth`: it has whole months and days, and says what counts against the pool; bytes of attacks do not. `GET /account` has what traffic beyond the pool costs this month.',
    ),
  ],
});

/** Attacks on a server: how they are read and followed. */
const attackGuide = (origin: string | null) => ({
  id: 'attacks',
  title: 'Attacks',
  content: [
    paragraph(
      '`GET /servers/{id}/incidents` lists attacks on a server, or from it, newest first. The times are those of the sensor at the hypervisor. Sources of an attack are not shown: they are mostly forged.',
    ),
    codeBlock({
      label: 'Attacks that have no reported end',
      code: `curl "${origin ?? '$URL'}/api/v2/servers/48211/incidents?state=active,stale&severity=attack" \\\n  -H "Authorization: Bearer $KEY"`,
    }),
    paragraph(
      'An attack is `active` while it is observed. Without a report of the sensor it becomes `stale`: whether it goes on is unknown. Only the sensor’s report of the end makes it `recovered`, after 60 seconds below the thresholds. An attack that returns within five minutes is the same one again.',
    ),
    paragraph(
      'Customers choose the protection views of each server on its Protect page. While they are off, this call is a `404` (`protect_disabled`), and `attack_bps` and `expected_bps` of the traffic are null. Observation goes on.',
    ),
  ],
});

interface Switch {
  task: string;
  hetzner: string;
  digitalOcean: string;
  /** Id of the call here. */
  id: string;
}

const row = (task: string, hetzner: string, digitalOcean: string, id: string): Switch => ({
  task,
  hetzner,
  digitalOcean,
  id,
});

/** Paths below `https://api.hetzner.cloud/v1` and `https://api.digitalocean.com/v2`, as their own Go clients call them. */
export const switches: readonly Switch[] = [
  row('Sizes', 'GET /server_types', 'GET /sizes', 'listPlans'),
  row('Prices', 'GET /pricing', 'GET /sizes', 'readPrices'),
  row('Operating systems', 'GET /images', 'GET /images', 'listImages'),
  row('Locations', 'GET /locations', 'GET /regions', 'listLocations'),
  row('Add an SSH key', 'POST /ssh_keys', 'POST /account/keys', 'createSshKey'),
  row('Deploy', 'POST /servers', 'POST /droplets', 'createServer'),
  row('Deploy from a snapshot', 'POST /servers', 'POST /droplets', 'createServer'),
  row('List', 'GET /servers', 'GET /droplets', 'listServers'),
  row('Power', 'POST /servers/{id}/actions/reboot', 'POST /droplets/{id}/actions, reboot', 'actOnServer'),
  row('Wait for an action', 'GET /actions/{id}', 'GET /actions/{id}', 'readAction'),
  row(
    'Another operating system',
    'POST /servers/{id}/actions/rebuild',
    'POST /droplets/{id}/actions, rebuild',
    'rebuildServer',
  ),
  row(
    'Another size',
    'POST /servers/{id}/actions/change_type',
    'POST /droplets/{id}/actions, resize',
    'resizeServer',
  ),
  row(
    'New root password',
    'POST /servers/{id}/actions/reset_password',
    'POST /droplets/{id}/actions, password_reset',
    'resetPassword',
  ),
  row('Rescue', 'POST /servers/{id}/actions/enable_rescue', 'none', 'rescueServer'),
  row('Attach an ISO', 'POST /servers/{id}/actions/attach_iso', 'none', 'attachIso'),
  row('Console', 'POST /servers/{id}/actions/request_console', 'none', 'openConsole'),
  row(
    'Take a snapshot',
    'POST /servers/{id}/actions/create_image',
    'POST /droplets/{id}/actions, snapshot',
    'createSnapshot',
  ),
  row('Snapshots', 'GET /images?type=snapshot', 'GET /snapshots', 'listSnapshots'),
  row(
    'Back to a snapshot',
    'POST /servers/{id}/actions/rebuild',
    'POST /droplets/{id}/actions, restore',
    'restoreSnapshot',
  ),
  row('Firewall', 'POST /firewalls/{id}/actions/set_rules', 'PUT /firewalls/{id}', 'replaceServerFirewall'),
  row('Add a firewall rule', 'none', 'POST /firewalls/{id}/rules', 'addFirewallRule'),
  row('Private network', 'POST /networks', 'POST /vpcs', 'createNetwork'),
  row('Join a private network', 'POST /servers/{id}/actions/attach_to_network', 'none', 'attachServer'),
  row('Reserve an address', 'POST /floating_ips', 'POST /reserved_ips', 'reserveAddress'),
  row(
    'Give an address to a server',
    'POST /floating_ips/{id}/actions/assign',
    'POST /reserved_ips/{ip}/actions, assign',
    'attachAddress',
  ),
  row(
    'Take an address off a server and keep it',
    'POST /floating_ips/{id}/actions/unassign',
    'POST /reserved_ips/{ip}/actions, unassign',
    'detachAddress',
  ),
  row('Reverse DNS', 'POST /servers/{id}/actions/change_dns_ptr', 'none', 'setReverseDns'),
  row(
    'Traffic',
    'GET /servers/{id}/metrics',
    'GET /monitoring/metrics/droplet/bandwidth',
    'readServerTraffic',
  ),
  row('Destroy', 'DELETE /servers/{id}', 'DELETE /droplets/{id}', 'destroyServer'),
  row('Credit', 'none', 'GET /customers/my/balance', 'readAccount'),
  row('Billing history', 'none', 'GET /customers/my/billing_history', 'listLedger'),
];

/** Rows whose call the document does not have are left out. */
function switchGuide(operations: readonly Operation[], base: string): Guide {
  const calls = new Map(operations.map((operation) => [operation.id, operation]));
  return {
    id: 'switch',
    title: 'Switch from Hetzner Cloud or DigitalOcean',
    content: [
      html`<p>${prose('Send the key as there: `Authorization: Bearer …`. What differs: money is decimal text, a firewall belongs to one server, a private network reaches all servers of its location, and a repeated `POST` under the same `Idempotency-Key` is executed once. Instead of asking again and again, wait: `Prefer: wait=30`. The actions `poweroff`, `power_off` and `power_cycle` are understood.')}</p>`,
      table<Switch>({
        caption: 'Calls of other providers',
        card: { line: ['hetzner', 'ocean'] },
        refreshSeconds: 0,
        rows: switches.filter(({ id }) => calls.has(id)),
        columns: [
          cellColumn('task', 'Task', ({ task }) => task),
          codeColumn('hetzner', 'Hetzner Cloud', ({ hetzner }) => hetzner),
          codeColumn('ocean', 'DigitalOcean', ({ digitalOcean }) => digitalOcean),
          {
            key: 'here',
            header: 'Here',
            kind: 'code',
            cell({ id }) {
              const { method, path, resource } = calls.get(id)!;
              return link(`${base}${resource}/#${id}`, `${method} ${path}`);
            },
          },
        ],
        empty: { title: 'No calls', text: 'There are none.' },
      }),
    ],
  };
}
