/** Numbers of feeds, notices, stores and retention. */
import type { Limit, SpecNumber } from './number.ts';

const minutes = {
  file: 'contracts/admin-api/schemas.ts',
  test: 'operations/surfaces/admin-api/telemetry.test.ts',
};
const live = { file: 'contracts/admin-api/live.ts', test: 'operations/surfaces/admin-api/live.test.ts' };
const visits = {
  file: 'monitor/feeds/minutes/plan-visit.ts',
  test: 'monitor/feeds/minutes/plan-visit.test.ts',
};
const notices = {
  file: 'contracts/destroy-notice/index.ts',
  test: 'monitor/surfaces/notices/notices.test.ts',
};
const history = { file: 'monitor/config.ts', test: 'monitor/live/live.test.ts' };
const ranking = { file: 'monitor/applications/rank-day.ts', test: 'monitor/applications/ranking.test.ts' };
const inbox = 'monitor/inbox/inbox.test.ts';

/** A line of a table that the monitor keeps for so long. */
function kept(words: string, what: string, file: string, code: string): SpecNumber {
  const [, value, unit] = /«(\d+) (\w+)»/.exec(code)!;
  return {
    ...{ words, what: `the time for which ${what} are kept`, value: Number(value), unit: unit! },
    ...{ file: `monitor/${file}/kept.ts`, code: code.replace(/«(\d+) (\w+)»/, '«$1» $2') },
    test: 'monitor/retention/retention.test.ts',
  };
}
const lineOf = (table: string, column: string, keptFor: string) =>
  `table: '${table}', column: '${column}', keptFor: '«${keptFor}»'`;
const linesOf = (column: string, keptFor: string, only: string) =>
  `column: '${column}',\n    keptFor: '«${keptFor}»',\n    isPartitioned: false,\n    only: "${only}"`;

export const limitsOfMonitor: readonly Limit[] = [
  {
    rule: 'NET-8',
    text: 'Telemetry request | at most 60 points per target; at most 20 application identities per minute',
    numbers: [
      {
        ...{ words: '60 points', what: 'the number of points of a target', value: 60, unit: 'points' },
        ...{ ...minutes, code: 'Type.Array(TelemetryPoint, { maxItems: «60» })' },
      },
      {
        ...{
          words: '20 application',
          what: 'the number of identities of a minute',
          value: 20,
          unit: 'identities',
        },
        ...{ ...minutes, code: 'Type.Array(TelemetryApplication, { maxItems: «20» })' },
      },
      {
        ...{
          words: '20 application',
          what: 'the number of identities that are sent',
          value: 20,
          unit: 'identities',
        },
        ...{ file: 'monitor/feeds/minutes/build-points.ts', code: 'identitiesMax = «20»;' },
        test: 'monitor/feeds/minutes/build-points.test.ts',
      },
    ],
  },
  {
    rule: 'NET-8',
    text: 'Live request | at most 30 buckets per target, 10 targets per POST, 50-target cursor per tick, observed_seconds at most 10, windows over 60 s excluded, live source limit 100,000 host windows; sensor allowance 1,000 host rows per capture',
    numbers: [
      {
        ...{ words: '30 buckets', what: 'the number of buckets of a target', value: 30, unit: 'buckets' },
        ...{ ...live, code: 'liveBucketsMax = «30»;' },
      },
      {
        ...{ words: '10 targets', what: 'the number of targets of a request', value: 10, unit: 'targets' },
        ...{ ...live, code: 'liveTargetsMax = «10»;' },
      },
      {
        ...{ words: '50-target', what: 'the number of targets of a live tick', value: 50, unit: 'targets' },
        ...{ file: 'monitor/feeds/live/index.ts', code: 'itemsPerTick: «50»,' },
        test: 'monitor/feeds/live/live-feed.test.ts',
      },
      {
        ...{ words: 'at most 10, windows', what: 'the observed time of a bucket', value: 10, unit: 's' },
        ...{ ...live, code: 'liveBucketSeconds = «10»;' },
      },
      {
        ...{ words: 'over 60 s', what: 'the longest window that counts', value: 60_000, unit: 'ms' },
        ...{ file: 'monitor/feeds/live/index-windows.ts', code: 'windowMsMax = «60_000»;' },
        test: 'monitor/feeds/live/build-buckets.test.ts',
      },
      {
        ...{
          words: '100,000 host windows',
          what: 'the number of host rows of a read',
          value: 100_000,
          unit: 'rows',
        },
        ...{ ...history, file: 'monitor/live/index.ts', code: 'hostRowsMax = «100_000»;' },
      },
      {
        ...{
          words: '1,000 host rows',
          what: 'the number of host rows of a window',
          value: 1_000,
          unit: 'rows',
        },
        ...{ file: 'contracts/sensor-api/live.ts', code: 'liveHostsMax = «1000»;' },
        test: 'sensor/collection/merge.test.ts',
      },
    ],
  },
  {
    rule: 'NET-8',
    text: 'Incident scan | at most 100 pending or active incidents per tick',
    numbers: [
      {
        ...{ words: '100 pending', what: 'the number of incidents of a tick', value: 100, unit: 'incidents' },
        ...{ file: 'monitor/feeds/incidents/index.ts', code: 'incidentsMax = «100»;' },
        test: 'monitor/feeds/incidents/incident-feed.test.ts',
      },
    ],
  },
  {
    rule: 'NET-8',
    text: 'Destroy notice | at most 100 VMs per notice; timestamp within 5 minutes',
    numbers: [
      {
        ...{ words: '100 VMs', what: 'the number of servers of a notice', value: 100, unit: 'servers' },
        ...{ ...notices, code: '{ maxItems: «100» }' },
      },
      {
        ...{ words: '5 minutes', what: 'the age of a notice', value: 300, unit: 's' },
        ...{ ...notices, code: 'noticeToleranceSeconds = «300»;' },
      },
    ],
  },
  {
    rule: 'NET-8',
    text: 'Local CIDRs per site | 128',
    numbers: [
      {
        ...{ words: '128', what: 'the number of local prefixes of a site', value: 128, unit: 'prefixes' },
        ...{ file: 'monitor/sites/site.ts', code: 'localCidrsMax = «128»;' },
        test: 'monitor/surfaces/console/console.test.ts',
      },
    ],
  },
  {
    rule: 'NET-8',
    text: 'Vendor lookup | `--limit` default 200; failed lookup backoff 12 hours',
    numbers: [
      {
        ...{ words: '200', what: 'the number of lookups of a pass', value: 200, unit: 'lookups' },
        ...{ file: 'monitor/main.ts', code: "'maximum number of registry lookups', '«200»'" },
        test: 'monitor/vendors/vendors.test.ts',
      },
      {
        ...{ words: '12 hours', what: 'the time between two lookups that fail', value: 12, unit: 'hours' },
        ...{ file: 'monitor/vendors/store.ts', code: "tried_at <= svc_now() - interval '«12» hours'" },
        test: 'monitor/vendors/vendors.test.ts',
      },
    ],
  },
  {
    rule: 'NET-8.7',
    text: 'Live history store | age limit and inactive TTL `SVC_LIVE_HISTORY_SECONDS` default 3600; per-site cap `SVC_LIVE_HISTORY_MAXLEN` default 20000; keep identical on every service',
    numbers: [
      {
        ...{ words: '3600', what: 'the age of live windows', value: 3_600, unit: 's' },
        ...{ ...history, code: "'SVC_LIVE_HISTORY_SECONDS',\n    «3600»," },
      },
      {
        ...{ words: '20000', what: 'the number of live windows of a site', value: 20_000, unit: 'windows' },
        ...{ ...history, code: "'SVC_LIVE_HISTORY_MAXLEN',\n    «20_000»," },
      },
    ],
  },
  {
    rule: 'NET-8.8',
    text: 'Dashboard 24-hour application ranking | refreshed every 5 minutes; held in the web process 90 seconds by default (Telemetry processing setting)',
    numbers: [
      {
        ...{ words: '24-hour', what: 'the time of a ranking', value: 86_400_000, unit: 'ms' },
        ...{ ...ranking, code: 'dayMs = «86_400_000»;' },
      },
      {
        ...{ words: '5 minutes', what: 'the time between two rankings', value: 300_000, unit: 'ms' },
        ...{ ...ranking, code: 'intervalMs = «300_000»;' },
      },
      {
        ...{ words: '90 seconds', what: 'the time for which a ranking is held', value: 90, unit: 's' },
        ...{ ...ranking, file: 'monitor/config.ts' },
        code: "'SVC_APPLICATION_RANKING_HOLD_SECONDS',\n    «90»,",
      },
    ],
  },
  {
    rule: 'NET-8.7',
    text: 'Eviction policy of the live store | no eviction, so group membership is never silently dropped',
    numbers: [],
  },
  {
    rule: 'NET-8.8',
    text: 'Telemetry inbox | tombstones pruned after two days once covered; skipped after five attempts',
    numbers: [
      {
        ...{ words: 'two days', what: 'the time for which tombstones are kept', value: 2, unit: 'days' },
        ...{ file: 'monitor/inbox/store.ts', code: "svc_now() - interval '«2» days'", test: inbox },
      },
      {
        ...{
          words: 'five attempts',
          what: 'the number of attempts of an upload',
          value: 5,
          unit: 'attempts',
        },
        ...{ file: 'monitor/inbox/note-failure.ts', code: 'attemptsMax = «5»;', test: inbox },
      },
    ],
  },
  {
    rule: 'NET-8',
    text: 'Retention (enforced hourly by `maintain_metrics`; physical removal may lag one interval):',
    numbers: [
      {
        ...{ words: 'hourly', what: 'the time between two deletions', value: 3_600_000, unit: 'ms' },
        ...{ file: 'monitor/retention/index.ts', code: 'intervalMs = «3_600_000»;' },
        test: 'monitor/retention/retention.test.ts',
      },
    ],
    elsewhere: { 'one interval': 'what is meant is the hour' },
  },
  {
    rule: 'NET-8.R1',
    text: 'three months | minute traffic, application facts and coverage, WAN probe and availability history, IP bindings, events, resolved alert episodes',
    numbers: [
      kept('three months', 'minutes', 'facts', lineOf('host_minutes', 'minute', '3 months')),
      kept('three months', 'application facts', 'facts', lineOf('application_facts', 'minute', '3 months')),
      kept('three months', 'minutes of captures', 'facts', lineOf('capture_minutes', 'minute', '3 months')),
      kept('three months', 'results of probes', 'probes', lineOf('probe_results', 'minute', '3 months')),
      kept('three months', 'hours of probes', 'probes', lineOf('probe_hours', 'hour', '3 months')),
      kept('three months', 'bindings', 'devices', lineOf('ip_bindings', 'last_seen_at', '3 months')),
      kept('three months', 'events', 'events', linesOf('occurred_at', '3 months', "kind <> 'ddos_detected'")),
      kept('three months', 'alerts', 'alerts', lineOf('alert_episodes', 'resolved_at', '3 months')),
    ],
  },
  {
    rule: 'NET-8.R2',
    text: 'one year | DDoS incidents, site-level correlations, suspects, destination rows, `ddos_detected` events',
    numbers: [
      kept('one year', 'incidents', 'incidents', lineOf('incidents', 'last_observed_at', '1 year')),
      kept(
        'one year',
        'correlations',
        'incidents',
        lineOf('site_correlations', 'last_observed_at', '1 year'),
      ),
      kept(
        'one year',
        'events of attacks',
        'events',
        linesOf('occurred_at', '1 year', "kind = 'ddos_detected'"),
      ),
      {
        ...{ words: 'one year', what: 'the time for which incidents are kept in operations', value: 1 },
        ...{ unit: 'year', file: 'operations/protect/incidents/store.ts' },
        code: "const keptFor = sql.lit('«1» year')",
        test: 'operations/surfaces/admin-api/incidents.test.ts',
      },
    ],
  },
  {
    rule: 'NET-8.R3',
    text: '24 hours | exact client/service endpoint pairs and classification summaries',
    numbers: [
      kept('24 hours', 'pairs of endpoints', 'facts', lineOf('endpoint_pairs', 'minute', '24 hours')),
      kept('24 hours', 'sums of pairs', 'facts', lineOf('pair_hours', 'hour', '24 hours')),
    ],
  },
  {
    rule: 'NET-8.R4',
    text: 'seven days | open-port observations, scan delivery receipts, packet-capture evidence files (`PCAP_RETENTION_DAYS`)',
    numbers: [
      kept('seven days', 'open ports', 'scans', lineOf('scan_observations', 'observed_at', '7 days')),
      kept('seven days', 'requests of scans', 'scans', lineOf('scan_requests', 'listed_at', '7 days')),
      {
        ...{ words: 'seven days', what: 'the time for which capture files are kept', value: 7, unit: 'days' },
        ...{ file: 'monitor/evidence/settings.ts', code: "'PCAP_RETENTION_DAYS',\n    «7»," },
        test: 'monitor/evidence/evidence.test.ts',
      },
      {
        ...{ words: 'seven days', what: 'the time for which open ports are kept in operations', value: 7 },
        ...{ unit: 'days', file: 'operations/protect/scans/port-store.ts' },
        code: "const keptFor = sql.lit('«7» days')",
        test: 'operations/surfaces/admin-api/port-scans.test.ts',
      },
      {
        ...{ words: 'seven days', what: 'the time for which evidence of findings is shown', value: 7 },
        ...{ unit: 'days', file: 'operations/views/finding-store.ts' },
        code: "const keptFor = sql.lit('«7» days')",
        test: 'operations/surfaces/admin-api/vulnerabilities.test.ts',
      },
    ],
  },
  {
    rule: 'NET-4.3',
    text: 'Telemetry tick: up to 50 allocations; each visit has the five most recent complete minutes plus up to 55 historical minutes; the 24-hour history is re-swept',
    numbers: [
      {
        ...{
          words: '50 allocations',
          what: 'the number of allocations of a tick',
          value: 50,
          unit: 'allocations',
        },
        ...{ file: 'monitor/feeds/minutes/index.ts', code: 'itemsPerTick: «50»,' },
        test: 'monitor/feeds/fleet.test.ts',
      },
      {
        ...{ words: 'five most recent', what: 'the recent part of a visit', value: 5, unit: 'minutes' },
        ...{ ...visits, code: 'recentSeconds = «5» * minuteSeconds;' },
      },
      {
        ...{ words: '55 historical', what: 'the older part of a visit', value: 55, unit: 'minutes' },
        ...{ ...visits, code: 'historySeconds = «55» * minuteSeconds;' },
      },
      {
        ...{ words: '24-hour', what: 'the history that is swept', value: 24 * 3_600, unit: 's' },
        ...{ ...visits, code: 'windowSeconds = «24 * 3600»;' },
      },
    ],
  },
];
