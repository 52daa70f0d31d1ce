/** The frame of the console's pages: navigation of the whole and of one site, breadcrumb, who is signed in. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Site, Sites } from '#monitor/sites/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { type Content, type Html, sendPage, shell } from '#service-kit/pages/index.ts';
import { viewerOf } from './guard.ts';

/** A site's pages, by the last part of their path. */
export const sitePages = [
  { path: 'traffic', label: 'Traffic', key: 't' },
  { path: 'applications', label: 'Applications', key: 'a' },
  { path: 'devices', label: 'Devices', key: 'd' },
  { path: 'sensors', label: 'Sensors', key: 's' },
  { path: 'events', label: 'Events', key: 'e' },
  { path: 'settings', label: 'Settings', key: 'c' },
] as const;

export interface PageOptions {
  title: string;
  /** The site that the page is about, and which of its pages it is. */
  site?: { site: Site; page: (typeof sitePages)[number]['path'] };
  toast?: Html;
  isNarrow?: boolean;
  status?: number;
}

export const SiteParams = Type.Object({ siteId: Type.Integer({ minimum: 1 }) });
export type SiteParams = Static<typeof SiteParams>;

/** Sends a page of the console in its frame. */
export function sendConsolePage(
  request: FastifyRequest,
  reply: FastifyReply,
  options: PageOptions,
  content: Content,
): FastifyReply {
  const viewer = viewerOf(request);
  const at = options.site;
  const navigation = [
    {
      items: [
        { label: 'Sites', href: '/', key: 'h', current: !at && request.url.split('?')[0] === '/' },
        {
          label: 'Operations',
          href: '/operations',
          key: 'o',
          current: request.url.startsWith('/operations'),
        },
      ],
    },
    ...(at
      ? [
          {
            label: at.site.name,
            items: sitePages.map((page) => ({
              label: page.label,
              href: `/sites/${at.site.id}/${page.path}`,
              key: page.key,
              current: page.path === at.page,
            })),
          },
        ]
      : []),
  ];
  const breadcrumb = at
    ? [
        { label: 'Sites', href: '/' },
        { label: at.site.name, href: `/sites/${at.site.id}/traffic` },
        { label: options.title },
      ]
    : [{ label: options.title }];
  const page = shell(
    {
      area: 'Monitor',
      home: '/',
      title: at ? `${options.title} · ${at.site.name}` : options.title,
      navigation,
      breadcrumb,
      person: {
        name: viewer.operator.name,
        detail: viewer.canChange ? 'operator' : 'read-only',
      },
      csrfToken: viewer.csrfToken,
      toast: options.toast,
      isNarrow: options.isNarrow ?? false,
    },
    content,
  );
  return sendPage(reply, page, options.status ?? 200);
}

/** The site of the path, or a 404. */
export async function siteOf(sites: Sites, siteId: number): Promise<Site> {
  const site = await sites.find(siteId);
  if (!site) throw new HttpError(404, { code: 'not_found', message: 'There is no such site.' });
  return site;
}

/** The message of an expected fault, for the form it came from; anything else is thrown on. */
export function faultText(error: unknown, ...codes: string[]): string {
  if (error instanceof CodedError && codes.includes(error.code)) return error.message;
  if (error instanceof CodedError && error.code === 'operators.read_only') {
    throw new HttpError(403, { code: 'read_only', message: error.message });
  }
  throw error;
}
