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

/** How long data of this kind is kept. */
function kept(words: string, data: string, count: number, unit: string): SpecNumber {
  return {
    ...{ words, what: `the time for which ${data} is kept`, value: count, unit },
    ...{ file: 'contracts/retention.ts', code: `${data}: '«${count}» ${unit}'` },
    test: 'monitor/retention/retention.test.ts',
  };
}

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
        ...{ file: 'monitor/sites/index.ts', code: 'localCidrsMax = «128»;' },
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
      kept('three months', 'traffic', 3, 'months'),
      kept('three months', 'availability', 3, 'months'),
      kept('three months', 'bindings', 3, 'months'),
      kept('three months', 'events', 3, 'months'),
      kept('three months', 'alerts', 3, 'months'),
    ],
  },
  {
    rule: 'NET-8.R2',
    text: 'one year | DDoS incidents, site-level correlations, suspects, destination rows, `ddos_detected` events',
    numbers: [kept('one year', 'attacks', 1, 'year')],
  },
  {
    rule: 'NET-8.R3',
    text: '24 hours | exact client/service endpoint pairs and classification summaries',
    numbers: [kept('24 hours', 'pairs', 24, 'hours')],
  },
  {
    rule: 'NET-8.R4',
    text: 'seven days | open-port observations, scan delivery receipts, packet-capture evidence files (`PCAP_RETENTION_DAYS`)',
    numbers: [
      kept('seven days', 'scans', 7, 'days'),
      {
        ...{ words: 'seven days', what: 'the time for which capture files are kept', value: 7, unit: 'days' },
        ...{ file: 'monitor/evidence/settings.ts', code: "'PCAP_RETENTION_DAYS',\n    «7»," },
        test: 'monitor/evidence/evidence.test.ts',
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
