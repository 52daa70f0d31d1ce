/** Ways to break what operations does with port scans (NET-1.6, 2.7, 3.1, 8.1). */
import type { Mutation } from './mutation.ts';

const folder = 'operations/protect/scans';
const requestScan = `${folder}/request-scan.ts`;
const transitions = `${folder}/transitions.ts`;
const mergePorts = `${folder}/merge-ports.ts`;
const receiveScans = `${folder}/receive-scans.ts`;
const ports = `${folder}/port-store.ts`;
const ofRequests = ['operations/surfaces/admin-api/scan-requests.test.ts'];
const ofResults = ['operations/surfaces/admin-api/port-scans.test.ts'];
const ofFeeds = ['operations/surfaces/admin-api/scan-feeds.test.ts'];
const ofCalls = ['operations/surfaces/customer-api/servers/ports.test.ts'];
const ofAlerts = [`${folder}/alerts.test.ts`];

export const mutationsOfScanRequests: readonly Mutation[] = [
  {
    ...{ rule: 'NET-2.7.1', what: 'only one address of a server is requested' },
    ...{ file: requestScan, tests: ofRequests },
    find: 'return all.filter((each)',
    replace: 'return all.slice(0, 1).filter((each)',
  },
  {
    ...{ rule: 'NET-2.7.1', what: 'private addresses are requested' },
    ...{ file: requestScan, tests: ofRequests },
    find: 'each.tenantId === tenantId && isPublic(each.address, isDocumentationGlobal)',
    replace: 'each.tenantId === tenantId',
  },
  {
    ...{ rule: 'NET-2.7.1', what: 'a click while requests are pending is a new one' },
    ...{ file: requestScan, tests: ofRequests },
    find: 'if (isAsked || ',
    replace: 'if (false || ',
  },
  {
    ...{ rule: 'NET-2.7.1', what: 'a server of another customer is scanned' },
    ...{ file: requestScan, tests: ofRequests },
    find: 'lockLiving(tx, scope, ',
    replace: "lockLiving(tx, 'all', ",
  },
  {
    ...{ rule: 'NET-2.7.1', what: 'a read key requests a scan' },
    ...{ file: requestScan, tests: ofRequests },
    find: ' || !actor.canWrite)',
    replace: ')',
  },
  {
    ...{ rule: 'NET-2.7.2', what: 'a claim makes a request running' },
    ...{ file: transitions, tests: ofRequests },
    find: "claimed: 'queued',",
    replace: "claimed: 'running',",
  },
  {
    ...{ rule: 'NET-2.7.2', what: 'a scan without contact is never overdue' },
    ...{ file: `${folder}/scan-request.ts`, tests: ofRequests },
    find: 'overdueMs = 5 * 60_000',
    replace: 'overdueMs = 5_000 * 60_000',
  },
  {
    ...{ rule: 'NET-2.7.9', what: 'what a requested scan found is not kept' },
    ...{ file: ports, tests: ofResults },
    find: "kind === 'routine' ? null : JSON.stringify(scan.services)",
    replace: 'null',
  },
  {
    ...{ rule: 'NET-2.7.9', what: 'a connection whose clusters have changed keeps its revision' },
    ...{ file: `${folder}/monitor-store.ts`, tests: ofFeeds },
    find: "else nextval('scan_connection_revisions') end",
    replace: 'else held.revision end',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'a scan closes a port that evidence of the other profile says is open' },
    ...{ file: mergePorts, tests: ofResults },
    find: 'return ends.includes(null) ? null',
    replace: 'return ends.every((end) => end === null) ? null',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'a partial scan closes ports' },
    ...{ file: mergePorts, tests: ofResults },
    find: "scan.state === 'complete' &&",
    replace: '',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'a scan that is delivered late opens what a newer one did not find' },
    ...{ file: mergePorts, tests: ofResults },
    find: 'const closedAt = start !== null && start > at ? start : null;',
    replace: 'const closedAt = null;',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'older evidence that arrives late replaces newer' },
    ...{ file: mergePorts, tests: ofResults },
    find: 'const isNewer = own === null || at > own.observedAt;',
    replace: 'const isNewer = true;',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'evidence of common scans is fresh for three hours' },
    ...{ file: `${folder}/ports-of-server.ts`, tests: ofResults },
    find: 'common: 2 * 3_600_000',
    replace: 'common: 3.5 * 3_600_000',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'evidence of full scans is fresh for two days' },
    ...{ file: `${folder}/ports-of-server.ts`, tests: ofResults },
    find: 'full: 27 * 3_600_000',
    replace: 'full: 48 * 3_600_000',
  },
  {
    ...{ rule: 'NET-2.7.10', what: 'observations are kept for eight days' },
    ...{ file: ports, tests: ofResults },
    find: "keptFor = sql.lit('7 days')",
    replace: "keptFor = sql.lit('8 days')",
  },
  {
    ...{ rule: 'NET-2.7.11', what: 'a result of a released address is stored' },
    ...{ file: receiveScans, tests: ofResults },
    find: 'allocation.releasedAt === null &&',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.7.11', what: 'a result answers a request of another customer' },
    ...{ file: receiveScans, tests: ofResults },
    find: "request.allocationId === allocation.id ? request : 'foreign'",
    replace: 'request',
  },
  {
    ...{ rule: 'NET-2.7.11', what: 'a second site delivers results of an address' },
    ...{ file: ports, tests: ofResults },
    find: 'if (!row.isOwner && !row.isSilent && !ownsMinutes) return null;',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.7.11', what: 'what was found of an address stays with a server that has lost it' },
    ...{ file: `${folder}/ports-of-server.ts`, tests: ofResults },
    find: 'const allocationIds = [...allocations.keys()];',
    replace:
      'const allocationIds = Array.from({ length: 1_000 }, (_, id) => id);\n  for (const id of allocationIds) if (!allocations.has(id)) allocations.set(id, { id, address: "x" } as never);',
  },
  {
    ...{ rule: 'NET-3.1', what: 'an interrupted scan is complete' },
    ...{ file: transitions, tests: ofRequests },
    find: "interrupted: 'partial',\n    released: 'partial',",
    replace: "interrupted: 'complete',\n    released: 'partial',",
  },
  {
    ...{ rule: 'NET-3.1', what: 'a running request expires' },
    ...{ file: transitions, tests: ofRequests },
    find: "running: {\n    started: 'running',",
    replace: "running: {\n    window_passed: 'expired',\n    started: 'running',",
  },
  {
    ...{ rule: 'NET-3.1', what: 'a request that ran and was withdrawn waits again' },
    ...{ file: transitions, tests: ofRequests },
    find: "withdrawn: 'partial',",
    replace: "withdrawn: 'queued',",
  },
  {
    ...{ rule: 'NET-3.1', what: 'a stopped server is scanned' },
    ...{ file: requestScan, tests: ofCalls },
    find: 'if (!server.isRunning)',
    replace: 'if (false)',
  },
  {
    ...{ rule: 'NET-3.1', what: 'the cooldown is nine minutes' },
    ...{ file: `${folder}/scan-request.ts`, tests: ofRequests },
    find: 'cooldownSeconds: 600',
    replace: 'cooldownSeconds: 530',
  },
  {
    ...{ rule: 'NET-3.1', what: 'a server of 33 addresses is scanned' },
    ...{ file: `${folder}/scan-request.ts`, tests: ofRequests },
    find: 'addressesOfServer: 32',
    replace: 'addressesOfServer: 33',
  },
  {
    ...{ rule: 'NET-3.1', what: 'an account has 101 pending addresses' },
    ...{ file: `${folder}/scan-request.ts`, tests: ofRequests },
    find: 'pendingOfAccount: 100',
    replace: 'pendingOfAccount: 101',
  },
  {
    ...{ rule: 'NET-1.6', what: 'queued requests stay when the views are switched off' },
    ...{ file: transitions, tests: ofRequests },
    find: "    views_off: 'cancelled',\n",
    replace: '',
  },
  {
    ...{ rule: 'NET-1.6', what: 'a scan is requested while the views are off' },
    ...{ file: requestScan, tests: ofRequests },
    find: 'if (!(await findSettings(tx, of)).viewsOn)',
    replace: 'if (false)',
  },
  {
    ...{ rule: 'NET-1.6', what: 'the end of a scan is told while the views are off' },
    ...{ file: `${folder}/alert-customer.ts`, tests: ofAlerts },
    find: 'if (!settings.viewsOn) return;',
    replace: '',
  },
];
