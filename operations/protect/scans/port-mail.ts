/** What people are mailed about newly open ports. Plain text; the link stands alone on its line. */
import type { DuePortMail } from '#operations/views/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatCount, formatTime } from '#service-kit/pages/index.ts';

/** Ports in one mail; the page has all. */
const listedMax = 20;

export function portMail(due: DuePortMail, url: string): Mail {
  const server = oneLine(due.serverName);
  const { openedCount: count, address, finishedAt } = due;
  const ports = count === 1 ? 'a newly open port' : `${formatCount(count)} newly open ports`;
  const rest = count - Math.min(listedMax, due.opened.length);
  return {
    to: due.email,
    id: due.publicId,
    subject: count === 1 ? `New open port on ${server}` : `${formatCount(count)} new open ports on ${server}`,
    text: `${[
      `Hello ${oneLine(due.personName)},`,
      `A scan of ${server} (${address}) that ended at ${formatTime(finishedAt.getTime(), 'seconds')} found ${ports}:`,
      [
        ...due.opened.slice(0, listedMax).map(lineOf),
        ...(rest > 0 ? [`and ${formatCount(rest)} more`] : []),
      ].join('\n'),
      'If you did not open them, check the server. All ports are on this page:',
      url,
      `You receive this mail as a member of ${oneLine(due.organizationName)}. The settings of the server’s Protect page turn these mails off.`,
    ].join('\n\n')}\n`,
  };
}

function lineOf({ transport, port, service, product }: DuePortMail['opened'][number]): string {
  const name = oneLine(product ?? service ?? '');
  return name === '' ? `${transport}/${port}` : `${transport}/${port}: ${name}`;
}

/** Names come from people and from servers; a line break in one would be a paragraph of its own, or a header. */
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
