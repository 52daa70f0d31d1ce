/** Content of notifications. */
import { oneLine } from '#common/text/index.ts';
import { formatTime } from '#service-kit/pages/index.ts';
import { measuredOf, titleOf } from './describe-episode.ts';
import type { Episode } from './read-episodes.ts';

export interface Notification {
  /** The same in every attempt, so that receivers can detect repetitions. */
  id: string;
  transition: 'opened' | 'resolved' | 'test';
  subject: string;
  text: string;
  /** The body of a webhook. */
  body: { type: string; timestamp: string; data: Record<string, unknown> };
}

/** `consoleUrl`: URL of the console, if known. */
export function makeNotification(
  id: string,
  transition: Notification['transition'],
  episode: Episode | null,
  createdAtMs: number,
  consoleUrl: string | null,
): Notification {
  const url = consoleUrl && `${consoleUrl.replace(/\/$/, '')}/alerts`;
  const link = url ? `\n\n${url}\n` : '\n';
  const timestamp = new Date(createdAtMs).toISOString();
  if (!episode) {
    const text = `This is a test of an alert channel. Nothing is wrong.${link}`;
    const body = { type: 'alert.test', timestamp, data: { summary: 'A test of this channel.' } };
    return { id, transition, subject: 'Test of alerts', text, body };
  }
  const title = titleOf(episode);
  const isOver = transition === 'resolved';
  const removed =
    episode.kind === 'findings_new' ? 'has no evidence of its findings any more' : 'was removed';
  const end = episode.resolution === 'removed' ? removed : 'has recovered';
  const measured = measuredOf(episode);
  const lines = [
    isOver ? `${episode.subjectName} ${end}.` : `${title}: ${measured}.`,
    '',
    `Site:    ${episode.siteName}`,
    `Opened:  ${formatTime(episode.openedAtMs, 'seconds')}`,
    ...(isOver
      ? [`Resolved: ${formatTime(episode.resolvedAtMs, 'seconds')}`, `The alert was: ${measured}.`]
      : []),
  ];
  const data = {
    episode_id: episode.id,
    kind: episode.kind,
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
    id,
    transition,
    subject: oneLine(`${isOver ? 'Resolved: ' : ''}${title} (${episode.siteName})`),
    text: `${lines.map(oneLine).join('\n')}${link}`,
    body: { type: `alert.${transition}`, timestamp, data },
  };
}
