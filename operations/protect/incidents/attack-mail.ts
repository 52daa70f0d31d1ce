/** What people are mailed about an attack. */

import { oneLine } from '#common/text/index.ts';
import { describeClass } from '#contracts/attack-classes.ts';
import { type DueAttackMail, findDueAttackMail } from '#operations/views/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatBitRate, formatCount, formatDuration, formatTime } from '#service-kit/pages/index.ts';
import { type AlertMailKind, writeAlertMail } from '../alert-mails/index.ts';
import { withArticle } from './describe.ts';

/** The mail about a start goes before the one about the end. */
export const attackMails: AlertMailKind<DueAttackMail> = {
  name: 'attack mails',
  about: 'attacks',
  table: 'attack_mails',
  order: ['incident_id', 'person_id'],
  workers: 2,
  find: findDueAttackMail,
  write: attackMail,
};

function attackMail(due: DueAttackMail, linkTo: (path: string) => string): Mail {
  const server = oneLine(due.serverName);
  return writeAlertMail(due, {
    subject: `${due.isDrill ? 'Drill: ' : ''}${subjectOf(due, server)}`,
    paragraphs: [
      ...(due.isDrill ? ['This is a drill that we run. There is no attack.'] : []),
      ...(due.moment === 'started' ? startOf(due, server) : endOf(due, server)),
      linkTo(`/client/servers/${due.serverId}/protect/incidents/${due.incidentId}`),
    ],
  });
}

function subjectOf({ moment, direction, class: name }: DueAttackMail, server: string): string {
  const isInbound = direction === 'inbound';
  if (moment === 'ended') return `Attack ${isInbound ? 'on' : 'from'} ${server} has ended`;
  return isInbound
    ? `${server} is under attack: ${describeClass(name)}`
    : `${server} sends an attack: ${describeClass(name)}`;
}

function startOf(due: DueAttackMail, server: string): string[] {
  const { direction, address, class: name, startedAt } = due;
  const began = `${formatTime(startedAt.getTime(), 'seconds')}`;
  const what =
    direction === 'inbound'
      ? `${server} (${address}) has been under attack since ${began}: ${withArticle(name)}.`
      : `${server} (${address}) has been sending an attack since ${began}: ${withArticle(name)}. Check whether the server is compromised.`;
  return [`${what} ${peakOf(due)}`, 'Follow it on this page:'];
}

function endOf(due: DueAttackMail, server: string): string[] {
  const { direction, address, class: name, startedAt, recoveredAt } = due;
  const began = formatTime(startedAt.getTime(), 'seconds');
  const lasted =
    recoveredAt === null
      ? ''
      : ` It ended at ${formatTime(recoveredAt.getTime(), 'seconds')}, after ${formatDuration((recoveredAt.getTime() - startedAt.getTime()) / 1000)}.`;
  const where = direction === 'inbound' ? 'on' : 'from';
  return [
    `The attack ${where} ${server} (${address}) has ended. It began at ${began}: ${withArticle(name)}.${lasted} ${peakOf(due)}`,
    'The details are on this page:',
  ];
}

const peakOf = ({ peakPps, peakBps }: DueAttackMail) =>
  `Peak: ${formatCount(Math.round(peakPps))} packets/s, ${formatBitRate(peakBps)}.`;
