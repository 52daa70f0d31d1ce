/** `/console/findings/`: potential vulnerabilities of all customers' servers. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { countedSeverities } from '#contracts/findings.ts';
import type { FindingListQuery, ProtectFindings } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, withQuery } from '#service-kit/pages/index.ts';
import { readFindingCursor, writeFindingCursor } from '../../parts/index.ts';
import { knownQuery, numberOf } from '../server-list.ts';
import { type FindingsQuery, findingStates, findingsHref, findingsPage } from './findings.page.ts';

export interface FindingsDeps {
  protectFindings: Pick<ProtectFindings, 'listAll' | 'totalAll'>;
  clock: Clock;
}

const pageSize = 100;
const text = Type.Optional(Type.String({ maxLength: 100 }));
const Query = Type.Object({
  ...{ state: text, severity: text, cve: text, customer: text, tenant: text, server: text, after: text },
});

export function registerFindings(app: App, deps: FindingsDeps): void {
  app.get('/findings/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const { cve } = request.query;
    const given = cve === undefined ? request.query : { ...request.query, cve: cve.trim().toUpperCase() };
    const query = knownQuery<FindingsQuery>(given, known);
    const { state, ...filter } = filterOf(query);
    const [found, totals] = await Promise.all([
      deps.protectFindings.listAll(staff.actor, {
        ...filter,
        state,
        after: readFindingCursor(query.after),
        limit: pageSize + 1,
      }),
      // The tabs count both states.
      deps.protectFindings.totalAll(staff.actor, filter),
    ]);
    const findings = found.slice(0, pageSize);
    const last = findings.at(-1);
    const url = withQuery(findingsHref, { ...query, after: undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: writeFindingCursor(last) }) : undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, findingsPage({ staff, findings, totals, query, url, nextHref, nowMs }));
  });
}

const known = {
  state: (value: string) => findingStates.some((choice) => choice.value === value),
  severity: (value: string) => countedSeverities.some((name) => name === value),
  cve: (value: string) => /^CVE-\d{4}-\d{4,19}$/.test(value),
  customer: (value: string) => value.trim() !== '' && !value.includes('\0'),
  after: (value: string) => readFindingCursor(value) !== undefined,
};

function filterOf({
  state,
  severity,
  cve,
  customer,
  tenant,
  server,
}: FindingsQuery): Omit<FindingListQuery, 'after' | 'limit'> {
  const name = countedSeverities.find((each) => each === severity);
  return {
    state: findingStates.find((choice) => choice.value === state)?.value,
    severities: name && [name],
    cveId: cve,
    customer: customer?.trim(),
    tenantId: numberOf(tenant),
    serverId: numberOf(server),
  };
}
