/** Parts of the pages about probes. */
import { failureNames } from '#monitor/alerts/index.ts';
import { type Availability, type Probe, type ProbeState, probeKinds } from '#monitor/probes/index.ts';
import { badge, type Content, field, form, formatPercent, html } from '#service-kit/pages/index.ts';

/** An older result says nothing about the present state. */
const freshMs = 300_000;

export type ProbeStatus = 'up' | 'loses' | 'down' | 'unknown' | 'paused';

/** The status in the newest measured minute, if it is recent. */
export function statusOf(probe: ProbeState, nowMs: number): ProbeStatus {
  if (!probe.isEnabled) return 'paused';
  const { newestMinuteMs, newestSent, newestLost } = probe;
  if (newestMinuteMs === null || nowMs - newestMinuteMs - 60_000 > freshMs) return 'unknown';
  if (newestLost === 0) return 'up';
  return newestLost === newestSent ? 'down' : 'loses';
}

export function statusBadge(probe: ProbeState, nowMs: number): Content {
  const why = probe.newestFailure ? `: ${failureNames[probe.newestFailure] ?? probe.newestFailure}` : '';
  switch (statusOf(probe, nowMs)) {
    case 'up':
      return badge('good', 'up');
    case 'loses':
      return badge('warn', `loses${why}`);
    case 'down':
      return badge('bad', `down${why}`);
    case 'paused':
      return badge('neutral', 'paused');
    case 'unknown':
      return badge('neutral', 'unknown');
  }
}

/** The end of a minute, or now in the running one, whose first results may be there already. */
export function measuredAt(minuteMs: number, nowMs: number): number {
  return Math.min(minuteMs + 60_000, nowMs);
}

/** Part of the measured minutes in which the target was up; null without measured minutes. */
export function shareUp(one: Pick<Availability, 'minutesUp' | 'minutesKnown'> | undefined): number | null {
  return one && one.minutesKnown > 0 ? one.minutesUp / one.minutesKnown : null;
}

/** Percentage of availability, with three decimals, enough for one minute in a month. */
export function upText(one: Availability | undefined): string | undefined {
  const share = shareUp(one);
  return share === null ? undefined : formatPercent(share, share > 0.99 ? 3 : 1);
}

export function rttText(rttUs: number | null | undefined): string | undefined {
  if (rttUs === null || rttUs === undefined) return undefined;
  return `${(rttUs / 1000).toFixed(rttUs < 10_000 ? 2 : 1)} ms`;
}

export interface ProbeForm {
  name: string;
  kind: string;
  target: string;
  port: string;
  question: string;
  interval: string;
  timeout: string;
}

export const emptyProbe: ProbeForm = {
  name: '',
  kind: 'icmp',
  target: '',
  port: '',
  question: '',
  interval: '10',
  timeout: '2000',
};

const kindLabels: Record<(typeof probeKinds)[number], string> = {
  icmp: 'ICMP echo',
  tcp: 'TCP connection',
  http: 'HTTP(S) GET',
  dns: 'DNS query',
};

export function kindLabel(kind: Probe['kind']): string {
  return kindLabels[kind];
}

export function addForm(siteId: number, csrfToken: string, typed: ProbeForm, error?: string): Content {
  return form({ action: `/sites/${siteId}/availability`, csrfToken, submit: 'Add probe', error }, [
    field({
      name: 'name',
      label: 'Name',
      required: true,
      value: typed.name,
      maxLength: 80,
      placeholder: 'Gateway',
    }),
    field({
      kind: 'select',
      name: 'kind',
      label: 'Kind',
      value: typed.kind,
      options: probeKinds.map((value) => ({ value, label: kindLabels[value] })),
    }),
    field({
      name: 'target',
      label: 'Target',
      required: true,
      isCode: true,
      value: typed.target,
      maxLength: 500,
      hint: 'An address or a host name; the whole URL for HTTP; the resolver for DNS.',
    }),
    field({
      kind: 'number',
      name: 'port',
      label: 'Port',
      value: typed.port,
      min: 1,
      max: 65_535,
      hint: 'For TCP; for DNS, leave empty for 53.',
    }),
    field({
      name: 'question',
      label: 'Name to query',
      isCode: true,
      value: typed.question,
      maxLength: 253,
      hint: 'For DNS: the name to look up at the resolver.',
    }),
    cadenceFields(typed),
  ]);
}

export function cadenceFields(typed: Pick<ProbeForm, 'interval' | 'timeout'>): Content {
  return html`${field({
    kind: 'number',
    name: 'interval',
    label: 'Every (seconds)',
    required: true,
    value: typed.interval,
    min: 5,
    max: 60,
  })}${field({
    kind: 'number',
    name: 'timeout',
    label: 'Lost after (milliseconds)',
    required: true,
    value: typed.timeout,
    min: 100,
    max: 10_000,
  })}`;
}
