/** The last day of one server, for a page about it: the explorer's own chart and figures, and the way to the explorer. */
import type { Actor } from '#operations/accounts/index.ts';
import type { ProtectTraffic, UsageStep } from '#operations/protect/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import { answerChart, chartUnit, exploreHref, stepText } from '#service-kit/explorer/index.ts';
import { type Content, chart, type Html, link, section, spark, withQuery } from '#service-kit/pages/index.ts';
import { readExplorerFlags } from './flags.ts';
import { readChart } from './read-answers.ts';
import { type ExplorerPlace, readQuestion, readView } from './traffic-view.ts';

export async function trafficDaySection(options: {
  traffic: Pick<ProtectTraffic, 'explore'>;
  history: ServerHistory;
  place: ExplorerPlace;
  actor: Actor;
  serverId: number;
  nowMs: number;
}): Promise<Html> {
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

export interface DaySteps {
  /** By the id of the server or the tenant. */
  steps: ReadonlyMap<number, readonly UsageStep[]>;
  /** Starts of the hours. */
  times: readonly number[];
}

const hourMs = 3_600_000;
const hoursShown = 24;

/** Whole hours, the present one with them. */
export function dayOf(nowMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.ceil(nowMs / hourMs) * hourMs;
  return { fromMs: toMs - hoursShown * hourMs, toMs };
}

export async function readDaySteps(
  traffic: Pick<ProtectTraffic, 'readServerSteps'>,
  actor: Actor,
  subject: Parameters<ProtectTraffic['readServerSteps']>[1],
  of: 'server' | 'tenant',
  nowMs: number,
): Promise<DaySteps> {
  const { fromMs, toMs } = dayOf(nowMs);
  const query = { fromMs, toMs, stepSeconds: hourMs / 1000 };
  return {
    steps: await traffic.readServerSteps(actor, subject, query, of),
    times: Array.from({ length: hoursShown }, (_, index) => fromMs + index * hourMs),
  };
}

/** Nothing where nothing was observed. */
export function daySpark({ steps, times }: DaySteps, id: number): Content {
  const byTime = new Map(steps.get(id)?.map((step) => [step.at.getTime(), step]));
  if (byTime.size === 0) return '';
  const values = (key: 'inboundBps' | 'outboundBps') => times.map((ms) => byTime.get(ms)?.[key] ?? null);
  return spark({ in: values('inboundBps'), out: values('outboundBps') }, 'In and out over the last 24 hours');
}
