/** The last day of one server, for a page about it: the explorer's own chart and figures, and the way to the explorer. */
import type { Actor } from '#operations/accounts/index.ts';
import type { ProtectTraffic } from '#operations/protect/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import { answerChart, chartUnit, exploreHref, stepText } from '#service-kit/explorer/index.ts';
import { chart, type Html, link, section, withQuery } from '#service-kit/pages/index.ts';
import { readExplorerFlags } from './flags.ts';
import type { ExplorerPlace } from './place.ts';
import { readChart } from './read-answers.ts';
import { readQuestion, readView } from './traffic-view.ts';

export interface DayOptions {
  traffic: Pick<ProtectTraffic, 'explore'>;
  history: ServerHistory;
  place: ExplorerPlace;
  actor: Actor;
  serverId: number;
  nowMs: number;
}

export async function trafficDaySection(options: DayOptions): Promise<Html> {
  const { place, nowMs, traffic, history, actor } = options;
  const about = { server: String(options.serverId) };
  const href = exploreHref(place.path, about);
  const values = {
    q: new URLSearchParams(href.slice(href.indexOf('?'))).get('q')!,
    by: 'none',
    range: '24h',
  };
  const { range, filters, measure } = readQuestion(place, values, nowMs);
  const explored = await traffic.explore(actor, { ...range, filters, measure });
  const view = readView(place, href, values, { serverCount: explored.servers.length, nowMs });
  const [{ answer, reasons }, { flags }] = await Promise.all([
    readChart(explored, view),
    readExplorerFlags({ history, actor, hrefOf: place.eventHref }, explored, place, view),
  ]);
  return section(
    { title: 'Traffic', actions: link(href, 'What used it', { kind: 'button' }) },
    chart({
      id: 'traffic-day',
      title: 'In and out of the last 24 hours',
      unit: chartUnit(answer),
      data: answerChart(view, answer, { reasons, flags }),
      dataUrl: withQuery(`${place.files}chart.json`, values),
      refreshSeconds: 60,
      source: `${stepText(answer.stepSeconds!)}, observed at the hypervisor`,
      emptyText: 'Nothing was observed in the last 24 hours.',
    }),
  );
}
