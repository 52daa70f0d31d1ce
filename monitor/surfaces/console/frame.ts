/** The frame of the console's pages: global and site navigation, breadcrumb, and the signed-in person. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { Id } from '#contracts/scalars.ts';
import type { Site, Sites } from '#monitor/sites/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  type Crumb,
  chosenOf,
  type Html,
  isConfirmed,
  type NavigationGroup,
  sendPage,
  shell,
  toast,
} from '#service-kit/pages/index.ts';
import { sendWantedFile } from '#service-kit/web/index.ts';
import { viewerOf } from './guard.ts';

/** Global navigation. An entry is shown if its page is registered. */
const places = [
  { path: '/', label: 'Overview', key: 'h' },
  { path: '/incidents', label: 'Incidents', key: 'i' },
  { path: '/alerts', label: 'Alerts', key: 'w' },
  { path: '/operations', label: 'Operations', key: 'o' },
  { path: '/system', label: 'System', key: 'y' },
  { path: '/audit', label: 'Audit trail', key: 'u' },
  { path: '/settings', label: 'Settings', key: 'p' },
] as const;

/** Navigation of a site, by the last part of the path; entries as above. */
export const sitePages = [
  { path: 'live', label: 'Live', key: 'l', group: 'Traffic' },
  { path: 'traffic', label: 'Traffic', key: 't', group: 'Traffic' },
  { path: 'explore', label: 'Explorer', key: 'x', group: 'Traffic' },
  { path: 'applications', label: 'Applications', key: 'a', group: 'Traffic' },
  { path: 'devices', label: 'Devices', key: 'd', group: 'Traffic' },
  { path: 'incidents', label: 'Incidents', key: 'k', group: 'Security' },
  { path: 'protection', label: 'Protection', key: 'n', group: 'Security' },
  { path: 'port-scans', label: 'Port scans', key: 'r', group: 'Security' },
  { path: 'vulnerabilities', label: 'Findings', key: 'f', group: 'Security' },
  { path: 'sensors', label: 'Sensors', key: 's', group: 'Health' },
  { path: 'availability', label: 'Availability', key: 'v', group: 'Health' },
  { path: 'events', label: 'Events', key: 'e', group: 'Health' },
  { path: 'settings', label: 'Site settings', key: 'c', group: 'Setup' },
] as const;

/** Maximum number of sites in the switcher; the overview has all. */
const switchMax = 30;

/** Throws unless the name of what is to be changed was typed. */
export function requireConfirmed(body: unknown, name: string): void {
  if (isConfirmed(body, name)) return;
  throw new HttpError(422, {
    code: 'not_confirmed',
    message: `Nothing was changed: type ${name} to confirm.`,
  });
}

export interface PageOptions {
  title: string;
  /** The site of the page, and the page within the site. */
  site?: { site: Site; page: (typeof sitePages)[number]['path'] };
  toast?: Html;
  /** What was done, by the value of `done` in the query, where a form leads back to its page. */
  done?: Readonly<Record<string, string>>;
  isNarrow?: boolean;
  status?: number;
}

export const SiteParams = Type.Object({ siteId: Id });
export type SiteParams = Static<typeof SiteParams>;

/** The range of a page, as `readRange` takes it. */
export const RangeQuery = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
/** A page that forms lead back to (`done` of its options). */
export const DoneQuery = Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) });

/** Sends a page of the console in its frame, or the file of one of its tables (`dataTable`). */
export function sendConsolePage(reply: FastifyReply, options: PageOptions, content: Content): FastifyReply {
  const { request } = reply;
  const file = sendWantedFile(request, reply, 'sites');
  if (file) return file;
  const viewer = viewerOf(request);
  const { site: at } = options;
  const { q: query, done } = request.query as { q?: unknown; done?: unknown };
  const text = options.done && typeof done === 'string' ? chosenOf(options.done, done) : undefined;
  const isSearch = hasPage(request, '/search');
  const page = shell(
    {
      area: 'Monitor',
      home: '/',
      title: at ? `${options.title} · ${at.site.name}` : options.title,
      navigation: navigationOf(request, at),
      breadcrumb: breadcrumbOf(options),
      ...(isSearch && {
        search: {
          action: '/search',
          placeholder: 'Search address, MAC, name',
          value: request.url.startsWith('/search') && typeof query === 'string' ? query : undefined,
          suggestUrl: '/search/suggestions',
        },
        palette: { url: '/search/palette', actions: [] },
      }),
      person: {
        name: viewer.operator.name,
        detail: viewer.canChange ? 'operator' : 'read-only',
        href: '/account/',
      },
      csrfToken: viewer.csrfToken,
      toast: options.toast ?? (text === undefined ? undefined : toast('good', text)),
      isNarrow: options.isNarrow ?? false,
    },
    at?.site.isSimulated ? [simulatedBanner(), content] : content,
  );
  return sendPage(reply, page, options.status ?? 200);
}

/** Over everything that a page of a simulated site says. */
function simulatedBanner(): Html {
  return banner({
    tone: 'info',
    title: 'Simulated site',
    text: 'Its hypervisors do not exist, and its traffic and attacks are made up. Everything else in the monitor works on them as on real ones.',
  });
}

function hasPage(request: FastifyRequest, url: string): boolean {
  return request.server.hasRoute({ method: 'GET', url });
}

function navigationOf(request: FastifyRequest, at: PageOptions['site']): NavigationGroup[] {
  const path = request.url.split('?')[0]!;
  const main: NavigationGroup = {
    items: places
      .filter((place) => hasPage(request, place.path))
      .map((place) => ({
        label: place.label,
        href: place.path,
        key: place.key,
        current: !at && (place.path === '/' ? path === '/' : path.startsWith(place.path)),
      })),
  };
  if (!at) return [main];
  const pages = sitePages.filter((page) => hasPage(request, `/sites/:siteId/${page.path}`));
  const groups = [...Map.groupBy(pages, ({ group }) => group)].map(([label, of]) => ({
    label,
    isFolded: label === 'Setup',
    items: of.map(({ label, path, key }) => ({
      ...{ label, key, href: `/sites/${at.site.id}/${path}`, current: path === at.page },
    })),
  }));
  return [
    { ...main, label: 'All sites', isFolded: true },
    { label: at.site.name, items: [], ...siteSwitch(viewerOf(request).sites, at) },
    ...groups,
  ];
}

/** The same page of other sites. */
function siteSwitch(sites: readonly Site[], at: NonNullable<PageOptions['site']>) {
  if (sites.length < 2) return {};
  const shown = sites.slice(0, switchMax).map((site) => ({
    label: site.name,
    href: `/sites/${site.id}/${at.page}`,
    current: site.id === at.site.id,
  }));
  const all = sites.length > switchMax ? [{ label: `All ${sites.length} sites`, href: '/' }] : [];
  return { switch: { label: 'switch site', items: [...shown, ...all] } };
}

/** A page below a site's page has that page above it. */
function breadcrumbOf({ title, site: at }: PageOptions): Crumb[] {
  if (!at) return [{ label: title }];
  const place = sitePages.find((page) => page.path === at.page)!;
  const above = { label: place.label, href: `/sites/${at.site.id}/${at.page}` };
  return [
    { label: 'Sites', href: '/' },
    { label: at.site.name, href: `/sites/${at.site.id}/traffic` },
    ...(title === place.label || title === at.site.name ? [] : [above]),
    { label: title },
  ];
}

/** What a path names is not there. */
export const notFound = (message: string) => new HttpError(404, { code: 'not_found', message });

/** The site in the path, or a 404. */
export async function siteOf(sites: Sites, siteId: number): Promise<Site> {
  const site = await sites.find(siteId);
  if (!site) throw notFound('This site does not exist.');
  return site;
}

/** The message of an expected error, for the form; any other error is thrown. */
export function faultText(error: unknown, ...codes: string[]): string {
  if (error instanceof CodedError && codes.includes(error.code)) return error.message;
  if (error instanceof CodedError && error.code === 'operators.read_only') {
    throw new HttpError(403, { code: 'read_only', message: error.message });
  }
  throw error;
}
