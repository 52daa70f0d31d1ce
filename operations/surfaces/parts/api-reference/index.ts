/**
 * The reference of the customer API as pages without a frame: the public site, the portal and the console put theirs
 * around it. It is drawn from the OpenAPI document alone, so what is described is what is validated and served.
 *
 * The first page holds the guides and all errors; a second one lists all calls, and each resource has a page of its own. A page is drawn when it
 * is first read and then kept until the catalog changes, which its examples name; nothing on it depends on the reader.
 */
import { buildDownloads, type Download } from '#clients/downloads.ts';
import {
  buildOpenApi,
  endpoints,
  errorKinds,
  readOpenApi,
  resourceOf,
  webhookEvents,
} from '#contracts/customer-api/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { Plan } from '#operations/catalog/index.ts';
import {
  assetUrl,
  type Content,
  cellColumn,
  codeBlock,
  codeColumn,
  formatBytes,
  type Html,
  html,
  link,
  prose,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { figureColumn, linkColumn } from '#service-kit/web/index.ts';
import {
  type Operation,
  type ReferenceDocument,
  type ReferenceResource,
  readDocument,
  resolveSchema,
} from './document.ts';
import { nameOffered, type Offered, usuallyOffered } from './example.ts';
import { type ApiFacts, type Guide, guidesOf } from './guides.ts';
import {
  createPlaces,
  fieldRows,
  fieldTable,
  keyField,
  type Places,
  renderOperation,
} from './operation.page.ts';

interface ApiReferenceOptions {
  /** Path of the first page, with its final slash: `/docs/api/`. */
  base: string;
  /** What this installation's limits are. */
  facts: ApiFacts;
  /** Where keys are created; null where the reader creates none. */
  createKeyHref: string | null;
}

interface ReferencePage {
  /** Below the base: empty, or `servers/`. */
  path: string;
  title: string;
  content(): Promise<Html>;
}

export function createApiReference(options: ApiReferenceOptions): readonly ReferencePage[] {
  const { base, facts, createKeyHref } = options;
  const origin = facts.origin ?? '$URL';
  const makeFrame = (offered: Offered) => {
    const document = readDocument();
    nameOffered(document, offered);
    const guides = guidesOf(document, { base, facts, createKeyHref, offered });
    const page = (current: string, content: Content) =>
      html`<link rel="stylesheet" href="${assetUrl('reference.css')}"><div class="reference">${renderNavigation({ document, guides, base, current })}<div class="reference-content">${content}</div></div><script type="module" src="${assetUrl('reference.js')}"></script>`;
    return { document, guides, page, places: createPlaces(document, base) };
  };
  type Frame = ReturnType<typeof makeFrame>;
  const drawResource = (name: string, { document, page, places }: Frame) => {
    const resource = document.resources.find((one) => one.name === name)!;
    return page(name, [
      createKeyHref !== null &&
        html`<p class="hint needs-script">No key yet? ${link(createKeyHref, 'Create a key')}</p>`,
      keyField(),
      resource.operations.map((operation) =>
        renderOperation(operation, { places, origin, errorsHref: base }),
      ),
      renderObjects(resource, places),
    ]);
  };
  let drawn: { key: string; frame: Frame; pages: Map<string, Html> } | null = null;
  const contentOf = (path: string, draw: (frame: Frame) => Html) => async () => {
    const offered = await readOffered(facts.catalog);
    const key = JSON.stringify(offered);
    if (drawn?.key !== key) drawn = { key, frame: makeFrame(offered), pages: new Map() };
    const { frame, pages } = drawn;
    const page = pages.get(path) ?? draw(frame);
    pages.set(path, page);
    return page;
  };
  const pageOf = (path: string, title: string, draw: (frame: Frame) => Html): ReferencePage => ({
    path,
    title,
    content: contentOf(path, draw),
  });
  return [
    pageOf('', 'API reference', ({ guides, page }) => page('', renderOverview(guides))),
    pageOf('clients/', 'Clients', ({ page }) => page('clients', renderClients(origin))),
    pageOf('calls/', 'All calls', ({ document, page }) => page('calls', renderCalls(document, base))),
    ...listResources().map(({ name, title }) =>
      pageOf(`${name}/`, title, (frame) => drawResource(name, frame)),
    ),
  ];
}

/** The calls as plain text, for programs that read documentation: `llms.txt` of the public reference. */
export function listCalls(base: string): string {
  const resources = readDocument().resources.map(({ name, title, summary, operations }) => {
    const calls = operations.map(
      ({ id, method, path, summary: does, scope }) =>
        `- [${method} ${path}](${base}${name}/#${id}): ${does} (${scope} key)`,
    );
    return `## ${title}\n\n${summary}\n\n${calls.join('\n')}\n`;
  });
  return `# Customer API

> Deploy, read, change and destroy virtual servers. Send the API key as \`Authorization: Bearer svc_…\`. Bodies and answers are JSON.

- [Guides and errors](${base}): keys, lists, safe retries with \`Idempotency-Key\`, waiting, rate limits, errors
- [OpenAPI 3.1 document](${base}openapi.json): every call, parameter, body and error
- [Clients](${base}clients/): TypeScript, Python, Ansible, command line, MCP server

${resources.join('\n')}`;
}

async function readOffered({ listPlans, listImages, listLocations }: ApiFacts['catalog']): Promise<Offered> {
  const [[plan], [image], [iso], [location]] = await Promise.all([
    listPlans(),
    listImages(),
    listImages(['iso']),
    listLocations(),
  ]);
  return {
    plan: plan ? describePlan(plan) : usuallyOffered.plan,
    image: image ? { slug: image.slug, name: image.name, family: image.family } : usuallyOffered.image,
    iso: iso ? { slug: iso.slug, name: iso.name } : usuallyOffered.iso,
    location: location
      ? { slug: location.slug, name: location.name, country: location.country }
      : usuallyOffered.location,
  };
}

function describePlan(plan: Plan): Offered['plan'] {
  return {
    slug: plan.slug,
    name: plan.name,
    vcpus: plan.vcpus,
    memory_mb: plan.memoryMb,
    disk_gb: plan.diskGb,
    port_mbit: plan.portMbit,
    price_hourly: formatQuanta(plan.hourlyQuanta),
    price_monthly_cap: formatQuanta(plan.monthlyCapQuanta),
  };
}

/** What the document is about, in its order, without making the document. */
function listResources(): { name: string; title: string }[] {
  const described = endpoints.filter(({ versions }) => versions.includes('v2'));
  return [...new Map(described.map(({ path }) => resourceOf(path)).map((one) => [one.name, one])).values()];
}

function renderObjects(resource: ReferenceResource, places: Places): Content {
  if (resource.objects.length === 0) return '';
  return section(
    { title: 'Objects', id: 'objects' },
    resource.objects.map((name) => {
      const schema = resolveSchema({ $ref: `#/components/schemas/${name}` }, places.document.schemas);
      const side = name.endsWith('Request') ? 'request' : 'answer';
      return html`<div id="object-${name}">${fieldTable(name, fieldRows(schema, places, side))}</div>`;
    }),
  );
}

interface NavigationOptions {
  document: ReferenceDocument;
  guides: readonly Guide[];
  base: string;
  /** Path of the page below the base, without its final slash; empty for the first page. */
  current: string;
}

/** The reference's own table of contents, the same on each of its pages, with a filter for those who have a keyboard. */
function renderNavigation({ document, guides, base, current }: NavigationOptions): Html {
  const resources = document.resources.map((resource) => {
    const items = resource.operations.map(
      (operation) =>
        html`<li>${link(`${base}${resource.name}/#${operation.id}`, html`<span>${operation.summary}</span><span class="method">${operation.method}</span>`, { kind: 'quiet' })}<span hidden>${operation.path} ${operation.id}</span></li>`,
    );
    const title = link(`${base}${resource.name}/`, resource.title, {
      kind: 'quiet',
      current: resource.name === current,
    });
    return html`<p class="navigation-label">${title}</p><ul>${items}</ul>`;
  });
  const guideItems = guides.map(
    (guide) => html`<li>${link(`${base}#${guide.id}`, guide.title, { kind: 'quiet' })}</li>`,
  );
  // Found by the filter alone: a list of every reason would bury the calls.
  const errors = errorKinds.map(({ reason, code, status }) => {
    const name = reason ?? code;
    return html`<li data-found-only hidden>${link(`${base}#error-${name}`, html`<span>${name}</span><span class="method">${status}</span>`, { kind: 'quiet' })}</li>`;
  });
  return html`<nav class="reference-nav" aria-label="API reference"><div class="field needs-script"><input type="search" data-search data-filter="reference-contents" placeholder="Find a call or an error" aria-label="Find a call or an error" aria-keyshortcuts="/" autocomplete="off"></div><div id="reference-contents"><p class="navigation-label">${link(base, 'Overview', { kind: 'quiet', current: current === '' })}</p><ul>${guideItems}</ul><p class="navigation-label">${link(`${base}clients/`, 'Clients', { kind: 'quiet', current: current === 'clients' })}</p><p class="navigation-label">${link(`${base}calls/`, 'All calls', { kind: 'quiet', current: current === 'calls' })}</p>${resources}<ul>${errors}</ul><p class="hint" data-nothing-found hidden>Nothing has that name.</p></div></nav>`;
}

/** The first page of the reference: how the API works, and what every call may answer. All calls have a page of their own. */
function renderOverview(guides: readonly Guide[]): Html {
  return html`${guides.map((guide) => section({ title: guide.title, id: guide.id }, guide.content))}${errorTable()}${eventTable()}`;
}

function renderCalls(document: ReferenceDocument, base: string): Html {
  return table<Operation>({
    caption: 'All calls',
    card: { line: ['what'] },
    refreshSeconds: 0,
    rows: document.resources.flatMap((resource) => resource.operations),
    columns: [
      linkColumn(
        'call',
        'Call',
        (row) => [`${row.method} ${row.path}`, `${base}${row.resource}/#${row.id}`],
        { kind: 'code' },
      ),
      { key: 'what', header: 'What it does', kind: 'prose', cell: (row) => row.summary },
      cellColumn('key', 'Key', (row) => row.scope),
      cellColumn('versions', 'Versions', (row) => (row.isInV1 ? 'v1, v2' : 'v2')),
    ],
    empty: { title: 'No calls', text: 'There are none.' },
  });
}

/** Every code and reason; each row is where the `doc_url` of such an error leads. */
function errorTable(): Html {
  const rows = errorKinds.toSorted((a, b) => a.status - b.status);
  return section(
    {
      title: 'All errors',
      id: 'errors',
      description: prose(
        'Every error is one JSON object: branch on `code`, show `message`, name `request_id` when you ask us. With `Accept: application/problem+json` it says the same in the members of RFC 9457.',
      ),
    },
    table<(typeof rows)[number]>({
      caption: 'Errors',
      card: { line: ['reason', 'text'] },
      refreshSeconds: 0,
      rows,
      columns: [
        codeColumn('status', 'Status', (row) => String(row.status)),
        codeColumn('code', 'Code', (row) => row.code),
        codeColumn(
          'reason',
          'Reason',
          (row) => html`<span id="error-${row.reason ?? row.code}" class="target">${row.reason ?? ''}</span>`,
        ),
        { key: 'text', header: 'Meaning', kind: 'prose', cell: (row) => prose(row.sentence) },
      ],
      empty: { title: 'No errors', text: 'There are none.' },
    }),
  );
}

function eventTable(): Html {
  return section(
    { title: 'All events', id: 'events', description: 'What webhooks can tell you.' },
    table<(typeof webhookEvents)[number]>({
      caption: 'Events',
      card: { line: ['text', 'when'] },
      refreshSeconds: 0,
      rows: [...webhookEvents],
      columns: [
        codeColumn('type', 'Type', (row) => row.type),
        { key: 'when', header: 'When', kind: 'prose', cell: (row) => row.summary },
      ],
      empty: { title: 'No events', text: 'There are none.' },
    }),
  );
}

/** Where the files are, in every place where the page is. */
const filesBase = '/docs/api/clients/';

let made: readonly Download[] | null = null;

/** Made when it is first asked for, and then kept: the same for every reader. */
export function clientDownloads(): readonly Download[] {
  made ??= buildDownloads(readOpenApi(buildOpenApi()));
  return made;
}

/** The digests as `sha256sum --check` reads them. */
export const clientDigests = () =>
  clientDownloads()
    .map(({ file, sha256 }) => `${sha256}  ${file}\n`)
    .join('');

function renderClients(origin: string): Html {
  const downloads = clientDownloads();
  const get = `curl -fO ${origin}${filesBase}`;
  const install: Record<Download['kind'], string> = {
    typescript: `${get}FILE\nnpm install ./FILE`,
    svcctl: `${get}FILE\nsudo install -m 755 FILE /usr/local/bin/svcctl\nsvcctl configure --url ${origin}\nsvcctl servers list\nsource <(svcctl completion bash)`,
    python: `${get}FILE\npython3 -m venv venv\nvenv/bin/pip install ./FILE`,
    ansible: `${get}FILE\nansible-galaxy collection install ./FILE\nansible-doc virtual_servers.cloud.server`,
  };
  return html`<p>${prose('All clients are made of the OpenAPI document of this installation. They repeat a call only where that can’t do anything twice, wait for actions, and walk through the pages of lists.')}</p>${table<Download>(
    {
      caption: 'Clients',
      card: { line: ['summary'] },
      refreshSeconds: 0,
      rows: [...downloads],
      columns: [
        linkColumn('file', 'File', (row) => [row.file, `${filesBase}${row.file}`], { kind: 'code' }),
        { key: 'summary', header: 'What it is', kind: 'prose', cell: (row) => prose(row.summary) },
        cellColumn('version', 'Version', (row) => row.version),
        figureColumn('size', 'Size', (row) => row.bytes.length, formatBytes),
      ],
      empty: { title: 'No clients', text: 'There are none.' },
    },
  )}${downloads.map(({ kind, title, file, sha256 }) =>
    section({ title, id: kind }, [
      codeBlock({ label: 'Install', code: install[kind].replaceAll('FILE', file) }),
      codeBlock({ label: 'SHA-256', code: sha256 }),
    ]),
  )}${section(
    { title: 'Check a download', id: 'check' },
    codeBlock({
      label: 'Compare the digests',
      code: `${get}SHA256SUMS\nsha256sum --check --ignore-missing SHA256SUMS`,
    }),
  )}`;
}
