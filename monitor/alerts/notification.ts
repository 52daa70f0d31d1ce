/** Content of notifications. Each kind of channel takes of it what its receiver shows. */
import { oneLine } from '#common/text/index.ts';
import { formatTime } from '#service-kit/pages/index.ts';
import type { Episode } from './describe-episode.ts';
import { measuredOf, titleOf } from './describe-episode.ts';
import { type AlertSeverity, alertKinds } from './episode.ts';

export interface Notification {
  /** The same in every attempt, so that receivers can detect repetitions. */
  id: string;
  transition: 'opened' | 'resolved' | 'test';
  /** The id of the notification of this channel that opened the alert; null for a test. */
  openedId: string | null;
  /** How the receiver named that one; null when this is it. */
  opened: string | null;
  subject: string;
  /** One line: what is wrong and how much, or that it is over. */
  summary: string;
  severity: AlertSeverity | 'info';
  tone: 'bad' | 'warn' | 'good' | 'info';
  kind: string;
  /** The name of what the alert is about. */
  source: string;
  /** Null: it concerns all sites. */
  site: string | null;
  /** Further lines, with their names. */
  facts: readonly (readonly [name: string, value: string])[];
  /** The page of alerts, if its address is known. */
  url: string | null;
  /** RFC 3339. */
  timestamp: string;
  openedAtMs: number;
  resolvedAtMs: number | null;
  text: string;
  /** The body of a webhook. */
  body: { type: string; timestamp: string; data: Record<string, unknown> };
}

/** Identity of a notification, as it is stored. */
export interface NotificationHead extends Pick<Notification, 'id' | 'transition' | 'openedId' | 'opened'> {
  createdAtMs: number;
}

/** `episode` is null for a test. `consoleUrl`: URL of the console, if known. */
export function makeNotification(
  head: NotificationHead,
  episode: Episode | null,
  consoleUrl: string | null,
): Notification {
  const { createdAtMs, ...identity } = head;
  const url = consoleUrl && `${consoleUrl.replace(/\/$/, '')}/alerts`;
  const link = url ? `\n\n${url}\n` : '\n';
  const timestamp = new Date(createdAtMs).toISOString();
  if (!episode) {
    const summary = 'This is a test of an alert channel. Nothing is wrong.';
    return {
      ...{ ...identity, subject: 'Test of alerts', summary, text: `${summary}${link}` },
      ...{ severity: 'info', tone: 'info', kind: 'test', source: 'svc monitor', site: null, facts: [], url },
      ...{ timestamp, openedAtMs: createdAtMs, resolvedAtMs: null },
      body: { type: 'alert.test', timestamp, data: { summary: 'A test of this channel.' } },
    };
  }
  const title = oneLine(titleOf(episode));
  const isOver = head.transition === 'resolved';
  const removed =
    episode.kind === 'findings_new' ? 'has no evidence of its findings any more' : 'was removed';
  const end = episode.resolution === 'removed' ? removed : 'has recovered';
  const measured = measuredOf(episode);
  const told: [string, string][] = [
    ['Site', episode.siteName],
    ['Opened', formatTime(episode.openedAtMs, 'seconds')],
  ];
  if (isOver)
    told.push(['Resolved', formatTime(episode.resolvedAtMs, 'seconds')], ['The alert was', measured]);
  const facts = told.map(([name, value]) => [name, oneLine(value)] as const);
  const first = oneLine(isOver ? `${episode.subjectName} ${end}.` : `${title}: ${measured}.`);
  const { severity } = alertKinds[episode.kind];
  const data = {
    episode_id: episode.id,
    kind: episode.kind,
    severity,
    subject: { key: episode.subjectKey, name: episode.subjectName },
    site: episode.siteId === null ? null : { id: episode.siteId, name: episode.siteName },
    opened_at: new Date(episode.openedAtMs).toISOString(),
    resolved_at: isOver && episode.resolvedAtMs ? new Date(episode.resolvedAtMs).toISOString() : null,
    resolution: isOver ? episode.resolution : null,
    summary: isOver ? `${title}: resolved` : `${title}: ${measured}`,
    details: episode.details,
    url,
  };
  return {
    ...identity,
    subject: oneLine(`${isOver ? 'Resolved: ' : ''}${title} (${episode.siteName})`),
    summary: oneLine(isOver ? `Resolved: ${title}` : `${title}: ${measured}`),
    ...{ severity, tone: isOver ? 'good' : severity === 'critical' ? 'bad' : 'warn' },
    ...{ kind: episode.kind, source: oneLine(episode.subjectName) },
    site: episode.siteId === null ? null : oneLine(episode.siteName),
    ...{ facts, url, timestamp, openedAtMs: episode.openedAtMs, resolvedAtMs: episode.resolvedAtMs },
    text: `${[first, '', ...facts.map(([name, value]) => `${name}: ${value}`)].join('\n')}${link}`,
    body: { type: `alert.${head.transition}`, timestamp, data },
  };
}
