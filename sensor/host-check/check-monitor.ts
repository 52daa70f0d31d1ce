import { describeError, hasCode } from '#common/errors/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import type { SensorConfig } from '#sensor/config.ts';
import { readIdentity, type SensorIdentity } from '#sensor/enrolment/index.ts';
import { createMonitorClient, type MonitorAddress, refusalMessage } from '#sensor/monitor-client/index.ts';
import { parsePlan } from '#sensor/plan/index.ts';
import { type Finding, finding } from './finding.ts';

const timeoutMs = 5000;
/** Minutes are UTC; with a larger clock error they are stored under the wrong time. */
const clockOffBadMs = 30_000;
const clockOffWarnMs = 2000;

/** Checks the enrolment, the monitor, and this host's clock against the monitor's. */
export async function checkMonitor(config: SensorConfig): Promise<Finding[]> {
  let identity: SensorIdentity | null = null;
  const findings: Finding[] = [];
  try {
    identity = readIdentity(config.stateDirectory);
    findings.push(
      identity
        ? finding(
            'ok',
            'enrolment',
            `Enrolled as sensor ${identity.sensorId} of the site ${identity.siteName}.`,
          )
        : finding(
            'bad',
            'enrolment',
            `Not enrolled: create a token on the site in the monitor, then enter it in ${config.commandName} enrol.`,
          ),
    );
  } catch (error) {
    findings.push(finding('bad', 'enrolment', describeError(error)));
  }
  const { url, allowsInsecureHttp } = config.monitor;
  if (allowsInsecureHttp && !isPrivateTransport(url))
    findings.push(
      finding(
        'warn',
        'transport',
        `${url} is not encrypted: every device on the path can read the credential. SVC_ALLOW_INSECURE_HTTP=1 allows it.`,
      ),
    );
  return [...findings, ...(await askMonitor(config.monitor, identity))];
}

async function askMonitor(address: MonitorAddress, identity: SensorIdentity | null): Promise<Finding[]> {
  const { url } = address;
  const askedAt = Date.now();
  try {
    const answer = await createMonitorClient(address).request({
      method: 'GET',
      path: '/plan',
      timeoutMs,
      ...(identity ? { credential: identity.credential } : {}),
    });
    const clock = checkClock(answer.headers.get('date'), (askedAt + Date.now()) / 2);
    if (answer.status === 200) {
      const takesLive = parsePlan(answer.json)?.takesLive ?? false;
      const live = takesLive ? 'accepts live windows' : 'accepts no live windows';
      return [
        finding('ok', 'monitor', `${url} answers, knows this sensor and ${live}.`),
        ...checkCredential(answer.json),
        ...clock,
      ];
    }
    if (answer.status === 401 && !identity) return [finding('ok', 'monitor', `${url} answers.`), ...clock];
    return [finding('bad', 'monitor', `${url} refuses this sensor: ${refusalMessage(answer)}.`), ...clock];
  } catch (error) {
    if (hasCode(error, 'transport.insecure'))
      return [finding('bad', 'monitor', `${describeError(error)}. Minutes are kept in the spool meanwhile.`)];
    return [
      finding(
        'bad',
        'monitor',
        `${describeError(error)} Set SVC_MONITOR_URL. Minutes are kept in the spool meanwhile.`,
      ),
    ];
  }
}

/** Expiry of the credential; nothing when an older monitor does not report it. */
function checkCredential(plan: unknown): Finding[] {
  const { credential } = (plan ?? {}) as { credential?: { expires_at?: unknown } };
  if (credential === undefined) return [];
  const { expires_at: end } = credential;
  return typeof end === 'string'
    ? [finding('ok', 'credential', `Valid until ${end}; a running sensor renews it in time.`)]
    : [finding('info', 'credential', 'Has no expiry until the sensor runs, which renews it at once.')];
}

function checkClock(date: string | null, nowMs: number): Finding[] {
  const theirs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(theirs)) return [];
  // The header has whole seconds.
  const offMs = Math.max(0, Math.abs(nowMs - theirs - 500) - 500);
  const seconds = (offMs / 1000).toFixed(1);
  if (offMs > clockOffBadMs)
    return [
      finding(
        'bad',
        'clock',
        `${seconds} s off the monitor's clock: minutes would get the wrong time. Set the clock and use NTP.`,
      ),
    ];
  if (offMs > clockOffWarnMs)
    return [finding('warn', 'clock', `${seconds} s off the monitor's clock. Use NTP.`)];
  return [finding('ok', 'clock', "Agrees with the monitor's.")];
}
