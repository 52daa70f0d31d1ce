/** Ways to break the wires of port scans (NET-4.e, 4.f, 4.k, 5.6, 9.3). */
import type { Mutation } from './mutation.ts';

const feed = 'monitor/feeds/port-scans';
const ofFeed = [`${feed}/port-scan-requests.test.ts`, `${feed}/port-scan-results.test.ts`];
const operations = 'operations/protect/scans';

export const mutationsOfScanWires: readonly Mutation[] = [
  {
    ...{ rule: 'NET-4.e', what: 'only the first page of requests is read' },
    ...{ file: `${feed}/sync-requests.ts`, tests: ofFeed },
    find: 'if (page.next_after === null) return',
    replace: 'if (true) return',
  },
  {
    ...{ rule: 'NET-4.e', what: 'one account fills the page' },
    ...{
      file: `${operations}/monitor-store.ts`,
      tests: ['operations/surfaces/admin-api/scan-feeds.test.ts'],
    },
    find: 'partition by tenant_id order by',
    replace: 'partition by id order by',
  },
  {
    ...{ rule: 'NET-4.f', what: 'a result without a receipt is delivered again and again' },
    ...{ file: 'monitor/scans/delivery-store.ts', tests: ofFeed },
    find: 'set delivered_at = svc_now(), delivery_outcome',
    replace: 'set delivery_outcome',
  },
  {
    ...{ rule: 'NET-4.f', what: 'a result that ends before it began is taken' },
    ...{
      file: `${operations}/check-scans.ts`,
      tests: ['operations/surfaces/admin-api/port-scans.test.ts'],
    },
    find: 'if (finishedMs < Date.parse(scan.started_at))',
    replace: 'if (false)',
  },
  {
    ...{ rule: 'NET-4.k', what: 'the start of a scan is reported as a heartbeat' },
    ...{ file: 'sensor/scanner/ongoing-scan.ts', tests: ['sensor/scanner/scan-service.test.ts'] },
    find: "return { kind: 'started', ...this.#attempt(),",
    replace: "return { kind: 'heartbeat', ...this.#attempt(),",
  },
  {
    ...{ rule: 'NET-5.6', what: 'the button answers 302' },
    ...{
      file: 'operations/surfaces/portal/protect/ports.routes.ts',
      tests: ['operations/surfaces/portal/protect/ports.test.ts'],
    },
    find: '{ scan: outcome }), 303)',
    replace: '{ scan: outcome }), 302)',
  },
  {
    ...{ rule: 'NET-9.3', what: 'the sensor says the version before' },
    ...{ file: 'sensor/version.ts', tests: ['sensor/version.test.ts'] },
    find: "'0.1.24'",
    replace: "'0.1.23'",
  },
];
