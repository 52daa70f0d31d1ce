/**
 * The gallery, `/dev/gallery`: every component in every state. A new component starts here.
 *
 * Register it outside production only. `/dev/gallery/sign-in` and `/dev/gallery/error/404` show the pages that stand
 * alone, `/dev/gallery/chart.json` answers newer chart data.
 */
import { countedSeverities } from '#contracts/findings.ts';
import type { App } from '#service-kit/http/index.ts';
import { chartJson } from './chart.ts';
import { errorPage } from './error.page.ts';
import { toast } from './feedback.ts';
import { galleryCharts, trafficOf } from './gallery-charts.ts';
import {
  galleryFeedback,
  galleryForms,
  galleryServers,
  galleryTables,
  galleryText,
} from './gallery-parts.ts';
import { type Content, type Html, html } from './html.ts';
import { tabs } from './navigation.ts';
import { pageHeader, section, stat, stats } from './page-header.ts';
import { rangePicker, readRange } from './range.ts';
import { sendPage, sendPaletteHits } from './send-page.ts';
import { severityBadge, severityBar } from './severity.ts';
import { type ShellOptions, shell } from './shell.ts';
import { signInPage } from './sign-in.page.ts';
import { age } from './text.ts';

const csrfToken = 'gallery';

function frame(url: string): Omit<ShellOptions, 'title'> {
  const at = (path: string) => ({ href: path, current: url.split('?')[0] === path });
  return {
    area: 'Gallery',
    home: '/dev/gallery',
    navigation: [
      {
        items: [
          { label: 'Components', key: 'c', ...at('/dev/gallery') },
          { label: 'With a toast', key: 't', count: 3, href: '/dev/gallery?toast=1' },
        ],
      },
      {
        label: 'Alone',
        items: [
          { label: 'Sign in', key: 's', ...at('/dev/gallery/sign-in') },
          { label: 'Error', key: 'e', ...at('/dev/gallery/error/404') },
        ],
      },
    ],
    breadcrumb: [
      { label: 'Gallery', href: '/dev/gallery' },
      { label: 'Site with a rather long name', href: '/dev/gallery' },
      { label: 'Components' },
    ],
    search: { action: '/dev/gallery', placeholder: 'Search components' },
    palette: {
      url: '/dev/gallery/palette',
      actions: [{ label: 'Order a server', href: '/dev/gallery#forms' }],
    },
    person: { name: 'Ada Lindqvist', detail: 'Northwind Hosting, operator' },
    csrfToken,
  };
}

function gallerySeverities(): Html {
  return section({ title: 'Severities', id: 'severities' }, [
    severityBar({
      label: 'Active findings',
      counts: { critical: 1, high: 12, medium: 310, low: 40, unrated: 3 },
      href: (severity) => `/dev/gallery?severity=${severity}`,
    }),
    severityBar({ label: 'No findings', counts: {} }),
    html`<p>${countedSeverities.map((name, index) => [severityBadge(name, index < 4 ? 9.8 - 2.3 * index : null), ' '])}</p>`,
  ]);
}

/** The gallery's page; pure, so that tests can render it. */
export function galleryPage(input: {
  url: string;
  nowMs: number;
  query: Readonly<Record<string, unknown>>;
}): Html {
  const { url, nowMs, query } = input;
  const range = readRange(query, nowMs);
  const parts: Content[] = [
    pageHeader({
      title: 'Components',
      state: {
        tone: 'bad',
        text: html`Under attack since 14:02, 3 of 12 servers. Last sample ${age(nowMs - 20_000, nowMs)}.`,
      },
      actions: rangePicker({ url, range }),
    }),
    tabs('Gallery', [
      { label: 'Overview', href: '/dev/gallery', current: true },
      { label: 'Networks', href: '/dev/gallery', count: 2 },
      { label: 'Firewall', href: '/dev/gallery' },
      { label: 'Bandwidth', href: '/dev/gallery' },
      { label: 'Protect', href: '/dev/gallery' },
    ]),
    stats(
      stat({
        label: 'In now',
        value: '12.4',
        unit: 'Mbit/s',
        source: html`${age(nowMs - 20_000, nowMs)}, uplink of node-3`,
      }),
      stat({
        label: 'Out now',
        value: '184',
        unit: 'Mbit/s',
        source: html`${age(nowMs - 20_000, nowMs)}, uplink of node-3`,
      }),
      stat({ label: 'Attacked servers', value: '3', unit: 'of 12', tone: 'bad', href: '/dev/gallery' }),
      stat({ label: 'Sensors', value: '8', unit: 'of 8', tone: 'good', source: 'all report' }),
      stat({ label: 'Loss', value: undefined, source: 'no probe yet' }),
    ),
    galleryCharts(nowMs, range),
    gallerySeverities(),
    galleryTables(url, query, nowMs, csrfToken),
    galleryForms(csrfToken),
    galleryFeedback(),
    galleryText(nowMs),
  ];
  return shell(
    {
      ...frame(url),
      title: 'Components',
      toast: query.toast === undefined ? undefined : toast('good', 'Server web-1 was started.'),
    },
    parts,
  );
}

/** Serves `/dev/gallery` and what belongs to it. */
export function registerGallery(app: App, nowMs: () => number = Date.now): void {
  app.get('/dev/gallery', async (request, reply) =>
    sendPage(
      reply,
      galleryPage({ url: request.url, nowMs: nowMs(), query: request.query as Record<string, unknown> }),
    ),
  );
  app.get('/dev/gallery/chart.json', async () =>
    chartJson('bit/s', trafficOf(nowMs(), readRange({}, nowMs()))),
  );
  app.get('/dev/gallery/palette', async (request, reply) => {
    const { q = '' } = request.query as { q?: string };
    const found = galleryServers.filter(({ name }) => name.startsWith(q.toLowerCase()));
    const kind = 'Servers';
    const href = '/dev/gallery#servers';
    return sendPaletteHits(
      reply,
      found.map(({ name, state }) => ({ kind, text: name, detail: state, href })),
    );
  });
  app.get('/dev/gallery/sign-in', async (request, reply) => {
    const { failed } = request.query as { failed?: string };
    const error = failed === undefined ? undefined : 'Email or password is incorrect.';
    return sendPage(reply, signInPage({ area: 'Monitor', error, email: error && 'ada@example.net' }));
  });
  app.get<{ Params: { status: string } }>('/dev/gallery/error/:status', async (request, reply) => {
    const status = Number(request.params.status) || 404;
    const isInside = 'inside' in (request.query as object);
    return sendPage(
      reply,
      errorPage({
        status,
        area: 'Gallery',
        home: '/dev/gallery',
        requestId: 'req-1f',
        faults: status === 422 ? [{ path: 'name', message: 'must NOT have more than 100 characters' }] : [],
        shell: isInside ? frame(request.url) : undefined,
      }),
      status,
    );
  });
}
