import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { describeTransportFailure, isPrivateTransport } from '#common/transport/index.ts';
import {
  type DestroyNotice,
  noticePath,
  signatureHeader,
  signNotice,
  timestampHeader,
} from '#contracts/destroy-notice/index.ts';
import type { Job, JobHandler } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface DestroyNoticesDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  /** The monitor's base URL, the secret shared with it, and whether the URL may be http on another machine. */
  monitor: { url: string; secret: string; allowsInsecureHttp?: boolean };
  /** For tests. */
  fetch?: typeof fetch;
}

const timeoutMs = 10_000;
/** A notice can be read, and its signature collected, on a way without encryption. It waits, and is sent when that is mended. */
const insecureText =
  'SVC_OPERATIONS_NOTICE_URL is not encrypted: give it an https address, or set SVC_ALLOW_INSECURE_HTTP=1';

/** The job that delivers one notice. It fails, and is tried again with growing pauses, until a 200 comes back. */
export function destroyNoticeJobs(deps: DestroyNoticesDeps): Record<string, JobHandler> {
  return { 'destroy-notices.send': { run: (job, signal) => sendNotice(deps, job, signal) } };
}

async function sendNotice(deps: DestroyNoticesDeps, job: Job, signal: AbortSignal): Promise<void> {
  const notice = await store.findNotice(deps.db(), (job.payload as { notice_id: number }).notice_id);
  if (notice === null || notice.acknowledgedAt !== null) return;
  const error = await attempt(deps, notice, signal);
  await store.noteAttempt(deps.db(), notice.id, error);
  if (error !== null) throw new CodedError('destroy_notices.not_acknowledged', error);
  deps.reporter.info('destroy notice acknowledged', { server: notice.serverId, cluster: notice.clusterId });
}

/** null when the monitor acknowledged; else why not, in words of ours: another's answer is never stored. */
async function attempt(deps: DestroyNoticesDeps, notice: store.DestroyNoticeRow, signal: AbortSignal) {
  if (!deps.monitor.allowsInsecureHttp && !isPrivateTransport(deps.monitor.url)) return insecureText;
  const content: DestroyNotice = {
    cluster_id: notice.clusterId,
    destroyed_at: notice.destroyedAt.toISOString(),
    virtual_machines: [{ id: notice.serverId, mac_addresses: notice.macAddresses }],
  };
  const body = Buffer.from(JSON.stringify(content), 'utf8');
  const timestamp = String(Math.floor(deps.clock.nowMs() / 1000));
  try {
    const response = await (deps.fetch ?? fetch)(`${deps.monitor.url}${noticePath}`, {
      method: 'POST',
      body,
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      headers: {
        'content-type': 'application/json',
        [timestampHeader]: timestamp,
        [signatureHeader]: signNotice(deps.monitor.secret, timestamp, body),
      },
    });
    await response.body?.cancel();
    return response.status === 200 ? null : `the monitor answered ${response.status}`;
  } catch (error) {
    return `the monitor does not answer: ${describeTransportFailure(error)}`;
  }
}
