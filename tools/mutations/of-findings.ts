/** Ways to break what operations does with potential vulnerabilities (NET-1.6, 2.6, 2.9, 4.d, 8.R4). */
import type { Mutation } from './mutation.ts';

const folder = 'operations/protect/findings';
const receive = `${folder}/receive-projections.ts`;
const projections = `${folder}/projection-store.ts`;
const ignore = `${folder}/ignore-finding.ts`;
const ignores = `${folder}/ignore-store.ts`;
const alerts = `${folder}/alert-customer.ts`;
const views = 'operations/views/finding-store.ts';
const routes = 'operations/surfaces/customer-api/servers/findings.routes.ts';
const ofFeed = ['operations/surfaces/admin-api/vulnerabilities.test.ts'];
const ofCalls = ['operations/surfaces/customer-api/servers/findings.test.ts'];
const ofAlerts = [`${folder}/alerts.test.ts`];

export const mutationsOfFindings: readonly Mutation[] = [
  {
    ...{ rule: 'NET-2.6.1', what: 'ignored findings are counted as active' },
    ...{ file: views, tests: ofCalls },
    find: 'count(*) filter (where i.id is null)::int as active',
    replace: 'count(*)::int as active',
  },
  {
    ...{ rule: 'NET-2.6.1', what: 'active findings are counted as ignored' },
    ...{ file: views, tests: ofCalls },
    find: 'count(*) filter (where i.id is not null)::int as ignored',
    replace: 'count(*)::int as ignored',
  },
  {
    ...{ rule: 'NET-2.6.1', what: 'the age of the assessment is the time of the scan' },
    ...{ file: views, tests: ofFeed },
    find: 'p.checked_at as "checkedAt"',
    replace: 's.observed_at as "checkedAt"',
  },
  {
    ...{ rule: 'NET-2.6.2', what: 'findings of the original of a package count as findings' },
    ...{ file: projections, tests: ofFeed },
    find: "is_upstream: assessment === 'unable'",
    replace: 'is_upstream: false',
  },
  {
    ...{ rule: 'NET-2.6.2', what: 'services that can not be assessed are left out' },
    ...{ file: views, tests: ofFeed },
    find: 'and s.reason is not null and s.observed_at',
    replace: 'and s.reason is null and s.observed_at',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'an older check takes the place of a newer one' },
    ...{ file: projections, tests: ofFeed },
    find: "< checked_at then 'older'",
    replace: "< checked_at - interval '1 year' then 'older'",
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'the same check again is a new one' },
    ...{ file: projections, tests: ofFeed },
    find: "= checked_at then 'same'",
    replace: "= checked_at then 'newer'",
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'findings that a check does not have any more stay' },
    ...{ file: projections, tests: ofFeed },
    find: 'delete from findings f where allocation_id',
    replace: 'delete from findings f where false and allocation_id',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'a scan of another server is taken as evidence' },
    ...{ file: receive, tests: ofFeed },
    find: 'if (await hasForeignScan(tx, allocation.id, [...scanIds]))',
    replace: 'if ((await hasForeignScan(tx, allocation.id, [...scanIds])) && false)',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'only the scan of the projection is compared, not those of its services' },
    ...{ file: receive, tests: ofFeed },
    find: ', ...projection.services.map(({ scan_id }) => scan_id)]);',
    replace: ']);',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'evidence from before the assignment is taken' },
    ...{ file: receive, tests: ofFeed },
    find: 'times.every((time) => ',
    replace: 'times.slice(0, 1).every((time) => ',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'another address or assignment is taken' },
    ...{ file: receive, tests: ofFeed },
    find: 'isTargetOf(allocation, projection, clusterIds, isDocumentationGlobal) &&',
    replace: '(isTargetOf(allocation, projection, clusterIds, isDocumentationGlobal) || true) &&',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'two sources deliver one address in turn' },
    ...{ file: projections, tests: ofFeed },
    find: 'row.isOwner || row.isSilent || ownsMinutes',
    replace: 'true || row.isOwner || row.isSilent || ownsMinutes',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'a source delivers findings of scans that another one delivers' },
    ...{ file: receive, tests: ofFeed },
    find: 'if (!ownsMinutes && (await isDeliveredByOther(tx, allocation.id, source))) return null;',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'an ignore is inherited by another version' },
    ...{ file: views, tests: ofCalls },
    find: 'and i.fingerprint = f.fingerprint ',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'an ignore is inherited by another assignment' },
    ...{ file: views, tests: ofCalls },
    find: 'and i.allocation_id = f.allocation_id ',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'an ignore holds at every port' },
    ...{ file: views, tests: ofCalls },
    find: ' and i.port = f.port',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'an ignore holds for every CVE' },
    ...{ file: views, tests: ofCalls },
    find: 'and i.cve_id = f.cve_id ',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'an ignore holds after its end' },
    ...{ file: views, tests: ofCalls },
    find: 'and (i.until is null or i.until > ${now})',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'what the server does not have is ignored in advance' },
    ...{ file: ignore, tests: ofCalls },
    find: 'if (!(await store.hasFinding(tx, of, finding))) continue;',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'a repeated ignore takes the place of the one that holds' },
    ...{ file: ignore, tests: ofCalls },
    find: 'if (await store.isIgnored(tx, of, finding)) continue;',
    replace: '',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'a finding of another version of the service is ignored' },
    ...{ file: ignores, tests: ofCalls },
    find: 'and f.port = ${port} and f.fingerprint = ${fingerprint} and f.cve_id',
    replace: 'and f.port = ${port} and ${fingerprint} = ${fingerprint}::text and f.cve_id',
  },
  {
    ...{ rule: 'NET-2.6.5', what: 'a customer ignores findings of another one' },
    ...{ file: ignore, tests: ofCalls },
    find: 'lockLiving(tx, actor.tenantIds, [serverId])',
    replace: "lockLiving(tx, 'all', [serverId])",
  },
  {
    ...{ rule: 'NET-1.6', what: 'findings are listed while the views are off' },
    ...{ file: routes, tests: ofCalls },
    find: 'if (!(await protectSettings.find(actor, subject)).viewsOn) throw protectDisabled();',
    replace: '',
  },
  {
    ...{ rule: 'NET-1.6', what: 'a finding is ignored while the views are off' },
    ...{ file: ignore, tests: ofCalls },
    find: 'if (!(await findSettings(tx, of)).viewsOn)',
    replace: 'if (!(await findSettings(tx, of)).viewsOn && false)',
  },
  {
    ...{ rule: 'NET-1.6', what: 'findings are told while the views are off' },
    ...{ file: 'operations/protect/settings/settings.ts', tests: ofAlerts },
    find: 'if (!viewsOn || !isBefore(viewsOnSince, checkedAt)) return { isWebhookOn',
    replace: 'if (!isBefore(viewsOnSince, checkedAt)) return { isWebhookOn',
  },
  {
    ...{ rule: 'NET-2.6.1', what: 'a known finding is told as new when its rating rises' },
    ...{ file: alerts, tests: ofAlerts },
    find: 'previousRank < 0)',
    replace: 'previousRank < 9)',
  },
  {
    ...{ rule: 'NET-2.6.1', what: 'a finding is mailed again when its rating rises above what was chosen' },
    ...{ file: alerts, tests: ofAlerts },
    find: 'previousRank < threshold && rank >= threshold',
    replace: 'rank >= threshold',
  },
  {
    ...{ rule: 'NET-2.6.1', what: 'ignored findings are told' },
    ...{ file: alerts, tests: ofAlerts },
    find: 'news.filter((each) => !ignored.has(keyOf(each))),',
    replace: 'news,',
  },
  {
    ...{ rule: 'NET-2.6.2', what: 'findings of the original of a package are told' },
    ...{ file: alerts, tests: ofAlerts },
    find: 'changed.filter(({ isUpstream }) => !isUpstream)',
    replace: 'changed.filter(() => true)',
  },
  {
    ...{ rule: 'NET-2.7.11', what: 'the last owner of an address goes on seeing its findings' },
    ...{ file: `${folder}/index.ts`, tests: ofFeed },
    find: 'await addresses.listAllocationsOf({ serverId, tenantId });',
    replace:
      "(await db().selectFrom('allocations').selectAll().where('server_id', '=', serverId).execute()) as { id: number }[];",
  },
  {
    ...{ rule: 'NET-2.7.11', what: 'operators see findings of addresses that were released' },
    ...{ file: 'operations/views/finding-list-store.ts', tests: ofFeed },
    find: 'join allocations a on a.id = p.allocation_id and a.released_at is null',
    replace: 'join allocations a on a.id = p.allocation_id',
  },
  {
    ...{ rule: 'NET-4.d', what: 'a projection of a released address is accepted' },
    ...{ file: receive, tests: ofFeed },
    find: 'allocation.releasedAt === null &&',
    replace: '',
  },
  {
    ...{ rule: 'NET-4.d', what: 'times of the future are taken' },
    ...{ file: `${folder}/check-projections.ts`, tests: ofFeed },
    find: 'aheadMsMax = 5 * 60_000',
    replace: 'aheadMsMax = 5_000 * 60_000',
  },
  {
    ...{ rule: 'NET-4.d', what: 'a service without a reason why it can not be assessed is taken' },
    ...{ file: `${folder}/check-projections.ts`, tests: ofFeed },
    find: "if ((assessment === 'unable') !== (reason !== null))",
    replace: "if (assessment === 'unable' && reason === null)",
  },
  {
    ...{ rule: 'NET-9.1', what: 'the feed is advertised at another version' },
    ...{ file: 'contracts/admin-api/vulnerabilities.ts', tests: ofFeed },
    find: 'protect_vulnerability_contract_version: 1 }',
    replace: 'protect_vulnerability_contract_version: 2 }',
  },
  {
    ...{ rule: 'NET-8.R4', what: 'evidence is shown for longer than seven days' },
    ...{ file: views, tests: ofFeed },
    find: "const keptFor = sql.lit('7 days');",
    replace: "const keptFor = sql.lit('70 days');",
  },
  {
    ...{ rule: 'NET-8.R4', what: 'evidence older than seven days is stored' },
    ...{ file: projections, tests: ofFeed },
    find: "const keptFor = sql.lit('7 days');",
    replace: "const keptFor = sql.lit('70 days');",
  },
];
