/** Ways to break the rules of port scans (NET-2.7, 8.R4). */
import type { Mutation } from './mutation.ts';

const targets = 'monitor/scans/choose-targets.ts';
const plan = ['monitor/scans/plan.test.ts'];
const reports = ['monitor/scans/reports.test.ts'];
const feed = ['monitor/feeds/port-scans/port-scan-feed.test.ts'];

export const mutationsOfScans: readonly Mutation[] = [
  {
    rule: 'NET-2.7.8',
    what: 'servers that were listed an hour ago are scanned',
    file: targets,
    find: 'listedAgeSecondsMax = 15 * 60',
    replace: 'listedAgeSecondsMax = 60 * 60',
    tests: plan,
  },
  {
    rule: 'NET-2.7.8',
    what: 'an address that two servers have is scanned',
    file: targets,
    find: 'candidate.holders > 1 || ',
    replace: '',
    tests: plan,
  },
  {
    rule: 'NET-2.7.10',
    what: 'a partial scan closes what it did not find',
    file: 'monitor/scans/receive-report.ts',
    find: "if (report.state !== 'complete') return;",
    replace: '',
    tests: reports,
  },
  {
    rule: 'NET-2.7.10',
    what: 'a common scan closes what a full scan found',
    file: 'monitor/scans/observation-store.ts',
    find: 'and profile = ${place.profile} and transport',
    replace: 'and transport',
    tests: reports,
  },
  {
    rule: 'NET-2.7.9',
    what: 'a result is sent under a connection that did not confirm its request',
    file: 'monitor/scans/delivery-store.ts',
    find: 'and r.connection_revision = ${connectionRevision}',
    replace: 'and ${connectionRevision}::bigint > 0',
    tests: feed,
  },
  {
    rule: 'NET-2.7.9',
    what: 'a newer scan of the sensor takes the place of a request’s result',
    file: 'monitor/scans/delivery-store.ts',
    find: 'case when a.request_id is not null then r.id is not null else not exists',
    replace: 'case when false then true else not exists',
    tests: feed,
  },
  {
    rule: 'NET-2.7.2',
    what: 'an unclaimed request is planned',
    file: 'monitor/scans/request-store.ts',
    find: "where r.state = 'claimed' and r.connection_revision = ${connectionRevision}",
    replace: "where r.state <> 'ended' and r.connection_revision = ${connectionRevision}",
    tests: feed,
  },
];
