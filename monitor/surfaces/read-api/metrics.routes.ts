/**
 * `GET /api/v1/sites/{id}/metrics`: a site in the Prometheus format.
 *
 * Values are of the newest whole minute that is old enough to have arrived, read at most once in a few seconds for any number of
 * scrapers. What is not known is left out, never 0.
 */
import { Type } from 'typebox';
import type { Explorer } from '#monitor/explorer/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { Traffic } from '#monitor/traffic/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { siteOf } from './authenticate.ts';

export interface SiteMetricsDeps {
  explorer: Explorer;
  traffic: Pick<Traffic, 'newestMinutes' | 'listCaptures'>;
  incidents: Pick<Incidents, 'countOpen'>;
}

const contentType = 'text/plain; version=0.0.4; charset=utf-8';
const serversMax = 1000;

export function registerSiteMetrics(app: App, deps: SiteMetricsDeps): void {
  const Params = Type.Object({ siteId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
  app.get('/sites/:siteId/metrics', { schema: { params: Params } }, async (request, reply) => {
    const { siteId } = request.params;
    // A token of another site gets the answer of a site that does not exist.
    if (siteId !== siteOf(request))
      throw new HttpError(404, {
        code: 'not_found',
        message: 'This token reads another site, or none has this id.',
      });
    return reply.type(contentType).send(await renderMetrics(deps, siteId));
  });
}

type Sample = [labels: Record<string, string>, value: number | null];

const escapeLabel = (text: string) => text.replace(/[\\"\n]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`));

function metric(name: string, type: 'gauge' | 'counter', help: string, samples: readonly Sample[]): string {
  const lines = samples
    .filter(([, value]) => value !== null)
    .map(([labels, value]) => {
      const named = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
      return `${name}${named.length > 0 ? `{${named.join(',')}}` : ''} ${value}`;
    });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join('\n');
}

async function renderMetrics(deps: SiteMetricsDeps, siteId: number): Promise<string> {
  const newestMs = (await deps.traffic.newestMinutes()).get(siteId) ?? null;
  const [captures, open, servers] = await Promise.all([
    deps.traffic.listCaptures(siteId),
    deps.incidents.countOpen(),
    newestMs === null ? null : readServers(deps.explorer, siteId, newestMs / 1000),
  ]);
  const ofCapture = (read: (one: (typeof captures)[number]) => number | null): Sample[] =>
    captures.map((one) => [{ sensor: one.hostName, capture: one.name, role: one.role }, read(one)]);
  const incidents = open.find((one) => one.siteId === siteId);
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1000);
  return `${[
    metric('svc_site_newest_minute_seconds', 'gauge', 'Start of the newest minute with traffic, unix time.', [
      [{}, seconds(newestMs)],
    ]),
    metric('svc_site_in_bits_per_second', 'gauge', 'To the addresses of the site, newest minute.', [
      [{}, servers?.series.inBps[0] ?? null],
    ]),
    metric('svc_site_out_bits_per_second', 'gauge', 'From the addresses of the site, newest minute.', [
      [{}, servers?.series.outBps[0] ?? null],
    ]),
    metric(
      'svc_server_in_bits_per_second',
      'gauge',
      'To a server, newest minute.',
      (servers?.rows ?? []).map((row) => [
        { server: row.key[0]!.value ?? '' },
        (row.amount.inBytes * 8) / 60,
      ]),
    ),
    metric(
      'svc_server_out_bits_per_second',
      'gauge',
      'From a server, newest minute.',
      (servers?.rows ?? []).map((row) => [
        { server: row.key[0]!.value ?? '' },
        (row.amount.outBytes * 8) / 60,
      ]),
    ),
    metric(
      'svc_capture_newest_minute_seconds',
      'gauge',
      'Start of the newest minute of a capture, unix time.',
      ofCapture((one) => one.newestMinute),
    ),
    metric(
      'svc_capture_packets_last_hour',
      'gauge',
      'Packets that a capture saw in the last hour.',
      ofCapture((one) => one.packets),
    ),
    metric(
      'svc_capture_kernel_dropped_last_hour',
      'gauge',
      'Packets that the kernel dropped in the last hour.',
      ofCapture((one) => one.kernelDropped),
    ),
    metric(
      'svc_capture_parser_dropped_last_hour',
      'gauge',
      'Packets that could not be decoded in the last hour.',
      ofCapture((one) => one.parserDropped),
    ),
    metric('svc_site_open_incidents', 'gauge', 'Attacks under way.', [[{}, incidents?.attacks ?? 0]]),
  ].join('\n')}\n`;
}

function readServers(explorer: Explorer, siteId: number, second: number) {
  return explorer.explore({
    siteId,
    range: { from: second, to: second + 60 },
    filters: [],
    by: ['server'],
    step: 60,
    measure: 'bytes',
    order: 'size',
    top: serversMax,
    compare: null,
  });
}
