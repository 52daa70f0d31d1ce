/** What people are mailed about an attack. Plain text; the link stands alone on its line. */
import type { DueAttackMail } from '#operations/views/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatBitRate, formatCount, formatDuration, formatTime } from '#service-kit/pages/index.ts';
import { describeClass, withArticle } from './describe.ts';

export function attackMail(due: DueAttackMail, url: string): Mail {
  const server = oneLine(due.serverName);
  const paragraphs = due.moment === 'started' ? startOf(due, server) : endOf(due, server);
  return {
    to: due.email,
    id: due.publicId,
    subject: `${due.isDrill ? 'Drill: ' : ''}${subjectOf(due, server)}`,
    text: `${[
      `Hello ${oneLine(due.personName)},`,
      ...(due.isDrill ? ['This is a drill that we run. There is no attack.'] : []),
      ...paragraphs,
      url,
      `You receive this mail as a member of ${oneLine(due.organizationName)}. The settings of the server’s Protect page turn these mails off.`,
    ].join('\n\n')}\n`,
  };
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

/** Names come from people; a line break in one would be a paragraph of its own, or a header. */
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
