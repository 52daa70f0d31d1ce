/**
 * The Protect page. It says first how fresh it is, then draws, then lists: minutes with their exact bytes, and the
 * applications of the last 24 hours. What was not observed is a gap and reads "unknown", never 0.
 */
import {
  type ApplicationRow,
  type FindingStatus,
  hasExactMinutes,
  type IncidentStatus,
  isStale,
  type LiveStatus,
  type MinuteRow,
  type MinuteStatus,
  type ProtectSettings,
  type ScanStatus,
  type ServerPorts,
  type StepRow,
  type Traffic,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/servers/index.ts';
import {
  age,
  type ChartArea,
  type ChartData,
  type Content,
  chart,
  chartJson,
  code,
  formatBitRate,
  formatBytes,
  formatCount,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  refreshing,
  section,
  shareBar,
  stat,
  stats,
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import { judgedColumns, lossNote } from './attack-cell.ts';
import { attackAreas, attackState, attacksNow, attacksSection, isHeadline } from './attacks.ts';
import {
  attacksCard,
  deliverySection,
  findingsCard,
  liveCard,
  minutesCard,
  scansCard,
} from './delivery-cards.ts';
import { type FindingsOfPage, findingsSection } from './findings.section.ts';
import { portsSection } from './ports.section.ts';
import type { AttacksOfPage } from './read-attacks.ts';
import { settingsSection } from './settings.page.ts';

export interface ProtectPageOptions {
  visitor: Visitor;
  server: Server;
  traffic: Traffic;
  /** The newest of the range, newest first. */
  minutes: readonly MinuteRow[];
  range: Range;
  /** Only this address; null for all. */
  address: string | null;
  settings: ProtectSettings;
  /** How the delivery stands of what the page shows. */
  delivery: {
    live: LiveStatus;
    minutes: MinuteStatus;
    attacks: IncidentStatus;
    scans: ScanStatus;
    findings: FindingStatus;
  };
  attacks: AttacksOfPage;
  ports: ServerPorts;
  findings: FindingsOfPage;
  /** The outcome of a click. */
  toast: { tone: Tone; text: string } | undefined;
}

export function protectPage(options: ProtectPageOptions): Html {
  const { visitor, server, traffic, range, attacks } = options;
  const path = `/client/servers/${server.id}/protect`;
  const url = pageUrl(options);
  const header = [
    refreshing({ id: 'protect-state', url, everySeconds: 15 }, [
      pageHeader({ title: server.name, state: stateOf(options) }),
    ]),
    attacksNow(server, attacks.open, attacks.nowMs),
  ];
  const body = [
    html`<div class="toolbar">${rangePicker({ url, range, hasLive: true })}${addressChoice(options)}</div>`,
    chart({
      id: 'traffic',
      title: 'Traffic',
      unit: 'bit/s',
      data: chartData(traffic.steps, range, attackAreas(attacks.inChart, attacks.nowMs)),
      dataUrl: withQuery(url.replace(path, `${path}/chart.json`), {}),
      refreshSeconds: 15,
      // No age here: the data is fetched again and again, this sentence is not.
      source: `${stepOf(range)}, observed at the hypervisor`,
      emptyText: 'No traffic was observed in this range.',
      csvHref: hasExactMinutes(range) ? url.replace(path, `${path}/minutes.csv`) : undefined,
    }),
    refreshing({ id: 'protect-tables', url, everySeconds: 15 }, [
      latestStats(options),
      attacksSection(server, attacks.listed, attacks.nowMs),
      portsSection(options),
      findingsSection(options.server, options.findings),
      applicationsSection(options, path),
      minutesSection(options, path),
      deliverySection([
        minutesCard(options.delivery.minutes, traffic.nowMs),
        liveCard(options.delivery.live, traffic.nowMs),
        attacksCard(options.delivery.attacks, traffic.nowMs),
        scansCard(options.delivery.scans, traffic.nowMs),
        findingsCard(options.delivery.findings, traffic.nowMs),
      ]),
    ]),
    settingsSection(options),
  ];
  return serverFrame({ visitor, server, tab: 'protect', toast: options.toast }, header, body);
}

/** What the chart asks for again and again. */
export function trafficChartJson(
  steps: readonly StepRow[],
  range: Range,
  areas: readonly ChartArea[],
): Record<string, unknown> {
  return chartJson('bit/s', chartData(steps, range, areas));
}

function chartData(steps: readonly StepRow[], range: Range, areas: readonly ChartArea[]): ChartData {
  const hasExpected = steps.some((step) => step.expectedBps !== null);
  const attack = steps.some((step) => (step.ddosBps ?? 0) > 0);
  return {
    timesMs: steps.map((step) => step.at.getTime()),
    stepMs: range.stepSeconds * 1000,
    range: { fromMs: range.fromMs, toMs: range.toMs },
    areas,
    notes: new Map(steps.map((step) => [step.at.getTime(), lossNote(step.reason)])),
    series: [
      { label: 'In', role: 'in', values: steps.map((step) => step.inboundBps) },
      { label: 'Out', role: 'out', values: steps.map((step) => step.outboundBps) },
      ...(hasExpected
        ? [{ label: 'Expected, in and out', isExpected: true, values: steps.map((step) => step.expectedBps) }]
        : []),
      ...(attack
        ? [{ label: 'Suspected attack', role: 'attack' as const, values: steps.map((step) => step.ddosBps) }]
        : []),
    ],
  };
}

function stateOf({ traffic, attacks }: ProtectPageOptions): { tone: Tone; text: Content } {
  const { latestMinuteMs, nowMs } = traffic;
  const now = attacks.open.filter((each) => isHeadline(each, nowMs));
  if (now.length > 0) return attackState(now, nowMs);
  if (latestMinuteMs === null) {
    return {
      tone: 'neutral',
      text: 'Nothing observed yet. Traffic appears here about two minutes after the first packets.',
    };
  }
  const endMs = latestMinuteMs + 60_000;
  const minute = formatTime(latestMinuteMs).slice(11);
  if (isStale(latestMinuteMs, nowMs)) {
    return {
      tone: 'warn',
      text: html`No new minutes since ${minute}, ${age(endMs, nowMs)}. Traffic since then is unknown, not zero.`,
    };
  }
  const latest = traffic.steps.findLast((step) => step.minutes > 0);
  if ((latest?.ddosBps ?? 0) > 0) {
    return {
      tone: 'bad',
      text: html`Suspected attack traffic. Last minute ${minute}, ${age(endMs, nowMs)}.`,
    };
  }
  return { tone: 'good', text: html`Up to date, ${minute} (${age(endMs, nowMs)}).` };
}

function stepOf(range: Range): string {
  return range.stepSeconds === 60 ? 'each minute' : `means of ${range.stepSeconds / 60} minutes`;
}

/** The newest minute over all addresses, and the sums of the range. */
function latestStats({ minutes, traffic }: ProtectPageOptions): Html {
  const newest = minutes.find((row) => row.inboundBps !== null || row.outboundBps !== null)?.minute.getTime();
  const latest = minutes.filter((row) => row.minute.getTime() === newest);
  const sum = (values: (number | null)[]) => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0);
  };
  const shown = (value: number | undefined, format: (value: number) => string) =>
    value === undefined ? undefined : format(value);
  const received = traffic.latestReceivedMs;
  const source =
    newest === undefined
      ? undefined
      : html`minute ${formatTime(newest).slice(11)}${received !== null && html`, received ${age(received, traffic.nowMs)}`}`;
  const observed = `${formatCount(traffic.steps.reduce((total, step) => total + step.minutes, 0))} minutes observed`;
  return stats(
    stat({ label: 'In', value: shown(sum(latest.map((row) => row.inboundBps)), formatBitRate), source }),
    stat({ label: 'Out', value: shown(sum(latest.map((row) => row.outboundBps)), formatBitRate), source }),
    stat({
      label: 'In, whole range',
      value: shown(sum(traffic.steps.map((step) => step.inboundBytes)), formatBytes),
      source: observed,
    }),
    stat({
      label: 'Out, whole range',
      value: shown(sum(traffic.steps.map((step) => step.outboundBytes)), formatBytes),
      source: observed,
    }),
  );
}

function applicationsSection({ traffic, address }: ProtectPageOptions, path: string): Html {
  const total = traffic.applications.reduce((sum, row) => sum + row.inboundBytes + row.outboundBytes, 0);
  const query = { address: address ?? undefined };
  return section(
    {
      title: 'Applications',
      id: 'applications',
      description:
        'Applications this server used or hosted in the last 24 hours. The range above does not apply.',
    },
    table<ApplicationRow>({
      caption: 'Applications of the last 24 hours',
      columns: [
        { key: 'name', header: 'Name', cell: (row) => row.name },
        { key: 'service', header: 'Service', kind: 'code', cell: serviceOf },
        {
          key: 'in',
          header: 'In',
          unit: 'bytes',
          kind: 'figure',
          cell: (row) => formatCount(row.inboundBytes),
        },
        {
          key: 'out',
          header: 'Out',
          unit: 'bytes',
          kind: 'figure',
          cell: (row) => formatCount(row.outboundBytes),
        },
        {
          key: 'share',
          header: 'Share',
          kind: 'figure',
          cell: (row) => shareBar(total === 0 ? null : (row.inboundBytes + row.outboundBytes) / total),
        },
        {
          key: 'last',
          header: 'Last sent',
          cell: (row) => age(row.lastSentAt.getTime() + 60_000, traffic.nowMs),
        },
      ],
      rows: traffic.applications,
      csvHref: withQuery(`${path}/applications.csv`, query),
      jsonHref: withQuery(`${path}/applications.json`, query),
      empty: {
        title: 'No applications in the last 24 hours',
        text: 'An application appears here when this server sends traffic, for example a web request or an answer to a visitor.',
      },
    }),
  );
}

function serviceOf(row: ApplicationRow): string {
  if (row.transport === null) return row.serverPort === null ? '–' : String(row.serverPort);
  return row.serverPort === null ? row.transport : `${row.transport}/${row.serverPort}`;
}

function minutesSection({ minutes, range, address }: ProtectPageOptions, path: string): Html {
  const query = {
    range: range.name,
    ...(range.name === 'custom'
      ? { from: new Date(range.fromMs).toISOString(), to: new Date(range.toMs).toISOString() }
      : {}),
    address: address ?? undefined,
  };
  const isExact = hasExactMinutes(range);
  return section(
    {
      title: 'Minutes',
      id: 'minutes',
      description:
        'Exact bytes of IP packets. Below 100 % coverage, part of the minute was not observed; nothing is estimated. The table shows the newest 60 minutes of the range. The files contain all.',
    },
    table<MinuteRow>({
      caption: 'Minutes',
      columns: [
        {
          key: 'minute',
          header: 'Minute',
          unit: 'UTC',
          cell: (row) => formatTime(row.minute.getTime()).replace(' UTC', ''),
        },
        { key: 'address', header: 'Address', kind: 'code', cell: (row) => code(row.address) },
        { key: 'in', header: 'In', unit: 'bytes', kind: 'figure', cell: (row) => known(row.inboundBytes) },
        { key: 'out', header: 'Out', unit: 'bytes', kind: 'figure', cell: (row) => known(row.outboundBytes) },
        {
          key: 'packets',
          header: 'Packets',
          kind: 'figure',
          cell: (row) => known(row.pps === null ? null : Math.round(row.pps * 60)),
        },
        ...judgedColumns,
      ],
      rows: minutes,
      csvHref: isExact ? withQuery(`${path}/minutes.csv`, query) : undefined,
      jsonHref: isExact ? withQuery(`${path}/minutes.json`, query) : undefined,
      empty: {
        title: 'No minutes in this range',
        text: 'The table lists every complete minute with observed traffic, and those of which the reason is known why there is none. A missing minute was not observed.',
      },
    }),
  );
}

function known(value: number | null): string | null {
  return value === null ? null : formatCount(value);
}

/** Which address is shown, where the server has or had several. */
function addressChoice(options: ProtectPageOptions): Content {
  const { server, traffic, address } = options;
  const addresses = new Set([
    ...server.addresses.map((each) => each.address),
    ...traffic.series.map((series) => series.address),
  ]);
  if (address !== null) addresses.add(address);
  if (addresses.size < 2) return '';
  const url = pageUrl(options);
  return html`<nav class="segments" aria-label="Address">${link(withQuery(url, { address: undefined }), 'All addresses', { kind: 'quiet', current: address === null })}${[
    ...addresses,
  ].map((each) =>
    link(withQuery(url, { address: each }), each, { kind: 'quiet', current: each === address }),
  )}</nav>`;
}

/** This page's URL with its range, so that a refresh shows the same range. */
function pageUrl({ server, range, address }: ProtectPageOptions): string {
  return withQuery(`/client/servers/${server.id}/protect`, {
    range: range.name,
    from: range.name === 'custom' ? new Date(range.fromMs).toISOString().slice(0, 16) : undefined,
    to: range.name === 'custom' ? new Date(range.toMs).toISOString().slice(0, 16) : undefined,
    address: address ?? undefined,
  });
}
