/** What people are mailed about potential vulnerabilities. */
import { oneLine } from '#common/text/index.ts';
import { type DueFindingMail, findDueFindingMail } from '#operations/views/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatCount, formatTime } from '#service-kit/pages/index.ts';
import { type AlertMailKind, writeAlertMail } from '../alert-mails/index.ts';

/** Findings in one mail; the page has all. */
const linesMax = 20;

export const findingMails: AlertMailKind<DueFindingMail> = {
  name: 'finding mails',
  about: 'potential vulnerabilities',
  table: 'finding_mails',
  workers: 1,
  find: findDueFindingMail,
  write: findingMail,
};

function findingMail(due: DueFindingMail, linkTo: (path: string) => string): Mail {
  const server = oneLine(due.serverName);
  const { total, address, checkedAt, listed } = due;
  const count = total === 1 ? '1 potential vulnerability' : `${formatCount(total)} potential vulnerabilities`;
  const rest = total - Math.min(linesMax, listed.length);
  return writeAlertMail(due, {
    subject: `${count} found on ${server}`,
    paragraphs: [
      `A check of ${server} (${address}) at ${formatTime(checkedAt.getTime(), 'seconds')} found ${count} by the versions that its services show:`,
      [...listed.slice(0, linesMax).map(lineOf), ...(rest > 0 ? [`and ${formatCount(rest)} more`] : [])].join(
        '\n',
      ),
      'Potential means: the version is named in the record. It does not say that the server can be exploited, nor that a patch is missing. Check the server, update what is old, or ignore what does not apply, on this page:',
      linkTo(`/client/servers/${due.serverId}/protect#findings`),
      'This product uses the NVD API but is not endorsed or certified by the NVD.',
    ],
  });
}

function lineOf(finding: DueFindingMail['listed'][number]): string {
  const { cveId, severity, score, transport, port, product, version, isKnownExploited } = finding;
  const software = oneLine([product, version].filter((part) => part !== null).join(' '));
  const rating = severity === null ? 'not rated' : score === null ? severity : `${severity}, ${score}`;
  return `${cveId} (${rating}${isKnownExploited ? ', known to be exploited' : ''}) ${transport}/${port}${software === '' ? '' : `: ${software}`}`;
}
