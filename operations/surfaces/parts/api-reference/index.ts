/**
 * The reference of the customer API as pages without a frame: the public site, the portal and the console put theirs
 * around it. It is drawn from the OpenAPI document alone, so what is described is what is validated and served.
 *
 * The first page holds the guides, all calls and all errors; each resource has a page of its own. A page is drawn when it
 * is first read and then kept: nothing on it depends on the reader, and a start should not wait for it.
 */
import { type Endpoint, endpoints, resourceOf } from '#contracts/customer-api/index.ts';
import { assetUrl, type Content, type Html, html, link, section } from '#service-kit/pages/index.ts';
import { type ReferenceResource, readDocument, resolveSchema } from './document.ts';
import { createPlaces, fieldRows, fieldTable, type Places } from './fields.ts';
import { type ApiFacts, guidesOf } from './guides.ts';
import { renderNavigation } from './navigation.ts';
import { renderOperation } from './operation.page.ts';
import { renderOverview } from './overview.page.ts';
import { keyField } from './try-form.ts';

export type { ApiFacts } from './guides.ts';

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
  content(): Html;
}

export function createApiReference(options: ApiReferenceOptions): readonly ReferencePage[] {
  const { base, facts, createKeyHref } = options;
  const origin = facts.origin ?? '$URL';
  const frame = once(() => {
    const document = readDocument();
    const guides = guidesOf(document, { base, facts, createKeyHref });
    const page = (current: string | null, content: Content) =>
      html`<link rel="stylesheet" href="${assetUrl('reference.css')}"><div class="reference">${renderNavigation({ document, guides, base, current })}<div class="reference-content">${content}</div></div><script type="module" src="${assetUrl('reference.js')}"></script>`;
    return { document, guides, page, places: createPlaces(document, base) };
  });
  const drawOverview = () => {
    const { document, guides, page } = frame();
    return page(null, renderOverview(document, guides, base));
  };
  const drawResource = (name: string) => {
    const { document, page, places } = frame();
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
  return [
    { path: '', title: 'API reference', content: once(drawOverview) },
    ...listResources().map(({ name, title }) => ({
      path: `${name}/`,
      title,
      content: once(() => drawResource(name)),
    })),
  ];
}

/** What the document is about, in its order, without making the document. */
function listResources(): { name: string; title: string }[] {
  const described = (endpoints as readonly Endpoint[]).filter(({ versions }) => versions.includes('v2'));
  return [...new Map(described.map(({ path }) => resourceOf(path)).map((one) => [one.name, one])).values()];
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
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
