/** What people are mailed about newly open ports. */
import { oneLine } from '#common/text/index.ts';
import { type DuePortMail, findDuePortMail } from '#operations/views/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatCount, formatTime } from '#service-kit/pages/index.ts';
import { type AlertMailKind, writeAlertMail } from '../alert-mails/index.ts';

/** Ports in one mail; the page has all. */
const listedMax = 20;

export const portMails: AlertMailKind<DuePortMail> = {
  name: 'port mails',
  about: 'open ports',
  table: 'port_mails',
  workers: 1,
  find: findDuePortMail,
  write: portMail,
};

function portMail(due: DuePortMail, linkTo: (path: string) => string): Mail {
  const server = oneLine(due.serverName);
  const { openedCount: count, address, finishedAt } = due;
  const ports = count === 1 ? 'a newly open port' : `${formatCount(count)} newly open ports`;
  const rest = count - Math.min(listedMax, due.opened.length);
  return writeAlertMail(due, {
    subject: count === 1 ? `New open port on ${server}` : `${formatCount(count)} new open ports on ${server}`,
    paragraphs: [
      `A scan of ${server} (${address}) that ended at ${formatTime(finishedAt.getTime(), 'seconds')} found ${ports}:`,
      [
        ...due.opened.slice(0, listedMax).map(lineOf),
        ...(rest > 0 ? [`and ${formatCount(rest)} more`] : []),
      ].join('\n'),
      'If you did not open them, check the server. All ports are on this page:',
      linkTo(`/client/servers/${due.serverId}/protect#ports`),
    ],
  });
}

function lineOf({ transport, port, service, product }: DuePortMail['opened'][number]): string {
  const name = oneLine(product ?? service ?? '');
  return name === '' ? `${transport}/${port}` : `${transport}/${port}: ${name}`;
}
