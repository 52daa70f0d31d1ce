/**
 * The reference of the customer API as pages without a frame: the public site, the portal and the console put theirs
 * around it. It is drawn from the OpenAPI document alone, so what is described is what is validated and served.
 *
 * The first page holds the guides and all errors; a second one lists all calls, and each resource has a page of its own. A page is drawn when it
 * is first read and then kept until the catalog changes, which its examples name; nothing on it depends on the reader.
 */
import { type Endpoint, endpoints, resourceOf } from '#contracts/customer-api/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { Plan } from '#operations/catalog/index.ts';
import { assetUrl, type Content, type Html, html, link, section } from '#service-kit/pages/index.ts';
import { renderClients } from './clients.page.ts';
import { type ReferenceResource, readDocument, resolveSchema } from './document.ts';
import { nameOffered, type Offered, usuallyOffered } from './example.ts';
import { createPlaces, fieldRows, fieldTable, type Places } from './fields.ts';
import { type ApiFacts, guidesOf } from './guides.ts';
import { renderNavigation } from './navigation.ts';
import { renderOperation } from './operation.page.ts';
import { renderCalls, renderOverview } from './overview.page.ts';
import { keyField } from './try-form.ts';

export interface ApiReferenceOptions {
  /** Path of the first page, with its final slash: `/docs/api/`. */
  base: string;
  /** What this installation's limits are. */
  facts: ApiFacts;
  /** Where keys are created; null where the reader creates none. */
  createKeyHref: string | null;
}

export interface ReferencePage {
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
  const [plans, images, locations] = await Promise.all([listPlans(), listImages(), listLocations()]);
  const [plan, image, location] = [plans[0], images[0], locations[0]];
  return {
    plan: plan ? describePlan(plan) : usuallyOffered.plan,
    image: image ? { slug: image.slug, name: image.name, family: image.family } : usuallyOffered.image,
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
    price_hourly: formatQuanta(plan.hourlyQuanta),
    price_monthly_cap: formatQuanta(plan.monthlyCapQuanta),
  };
}

/** What the document is about, in its order, without making the document. */
function listResources(): { name: string; title: string }[] {
  const described = (endpoints as readonly Endpoint[]).filter(({ versions }) => versions.includes('v2'));
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
