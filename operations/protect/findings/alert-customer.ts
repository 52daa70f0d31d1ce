/**
 * Tells a customer of potential vulnerabilities that are new: by a webhook event for each, and by one mail for each check.
 *
 * A finding is new once for each server, port, version and CVE, however often it is delivered; a mail is sent also when a known
 * one is rated up to the severity that the customer chose. What is told is queued in the transaction that stores the check.
 * Ignored findings are not told, nor checks older than a day or from before the choice; what was not told stays so.
 */

import { oneLine } from '#common/text/index.ts';
import type { ProjectedFinding, Projection } from '#contracts/admin-api/vulnerabilities.ts';
import { emit } from '#operations/events/index.ts';
import {
  type DueFindingMail,
  findDueFindingMail,
  type ListedInMail,
} from '#operations/views/alert-mail-store.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatCount, formatTime } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type AlertMailKind, writeAlertMail } from '../alert-mails/index.ts';
import { findingAlertsSince, findSettings } from '../settings/index.ts';
import { rankOf } from './finding.ts';
import * as store from './store.ts';

export interface AlertDeps {
  /** Whether mails can be sent at all. */
  canMail: boolean;
}

export interface AlertInput {
  of: store.Generation;
  projection: Projection;
  /** What the check changed. */
  changed: readonly store.ChangedFinding[];
  nowMs: number;
}

const lateMs = 24 * 3_600_000;
/** Webhook events of one check, and lines of a mail; the page and the API have all. */
const eventsMax = 50;
const listedMax = 50;

/** A finding that is new, or newly severe. */
interface News extends ListedInMail {
  fingerprint: string;
  rank: number;
  previousRank: number;
}

export async function alertCustomer(deps: AlertDeps, tx: Queryable, input: AlertInput): Promise<void> {
  const { of, projection, changed, nowMs } = input;
  const found = changed.filter(({ isUpstream }) => !isUpstream);
  // Noted also while nothing is told, so that a choice of later does not tell of what was there.
  const news = await store.noteKnown(
    tx,
    of,
    found.map((each) => ({ ...each, rank: rankOf(each.severity) })),
  );
  const checkedAt = new Date(projection.checked_at);
  if (news.length === 0 || checkedAt.getTime() < nowMs - lateMs) return;
  const { isWebhookOn, mailFrom } = findingAlertsSince(await findSettings(tx, of), checkedAt);
  if (!isWebhookOn && mailFrom === null) return;
  const ignored = new Set((await store.listIgnored(tx, of)).map(keyOf));
  const told = describeNews(
    projection,
    news.filter((each) => !ignored.has(keyOf(each))),
  );
  if (isWebhookOn) await emitNew(tx, of, told);
  if (mailFrom === null || !deps.canMail) return;
  const threshold = rankOf(mailFrom);
  const mailed = told.filter(({ rank, previousRank }) => previousRank < threshold && rank >= threshold);
  if (mailed.length === 0) return;
  await store.queueMails(tx, of, {
    checkedAt: projection.checked_at,
    listed: mailed
      .slice(0, listedMax)
      .map(({ fingerprint: _, rank: __, previousRank: ___, ...line }) => line),
    total: mailed.length,
    severity: mailed[0]!.severity!,
  });
}

async function emitNew(tx: Queryable, { serverId, address }: store.Generation, told: readonly News[]) {
  const fresh = told.filter(({ previousRank }) => previousRank < 0);
  for (const { transport, port, fingerprint, cveId, severity } of fresh.slice(0, eventsMax))
    await emit(tx, {
      ...{ type: 'server.finding_new', serverId, address },
      ...{ transport, port, fingerprint, cveId, severity },
    });
}

/** News with what a reader is told of them, the most severe first. */
function describeNews({ services }: Projection, news: readonly store.NewsOfFinding[]): News[] {
  const found = new Map<string, Pick<ListedInMail, 'product' | 'version'> & { finding: ProjectedFinding }>();
  for (const { transport, port, fingerprint, product, version, findings } of services)
    for (const finding of findings)
      found.set(keyOf({ transport, port, fingerprint, cveId: finding.cve_id }), {
        product,
        version,
        finding,
      });
  return news
    .map(({ transport, port, fingerprint, cveId, previousRank }): News => {
      const { product, version, finding } = found.get(keyOf({ transport, port, fingerprint, cveId }))!;
      const { severity, score, known_exploited: isKnownExploited } = finding;
      return {
        ...{ transport, port, fingerprint, cveId, previousRank, product, version, severity, score },
        ...{ isKnownExploited, rank: rankOf(severity) },
      };
    })
    .sort(bySeverity);
}

function bySeverity(a: News, b: News): number {
  return (
    b.rank - a.rank ||
    Number(b.isKnownExploited) - Number(a.isKnownExploited) ||
    (b.score ?? -1) - (a.score ?? -1) ||
    (a.cveId < b.cveId ? -1 : 1)
  );
}

const keyOf = ({ transport, port, fingerprint, cveId }: store.IgnoredKey) =>
  `${transport}/${port} ${fingerprint} ${cveId}`;

/** Findings in one mail; the page has all. */
const linesMax = 20;

/** What people are mailed about potential vulnerabilities. */
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
