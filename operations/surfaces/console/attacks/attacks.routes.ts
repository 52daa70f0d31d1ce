/** `/console/attacks/`: attacks on all customers' servers, and from them. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { attackClasses } from '#contracts/attack-classes.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { ProtectIncidents } from '#operations/protect/index.ts';
import type { AttackQuery } from '#operations/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, withQuery } from '#service-kit/pages/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';
import { readIncidentCursor, writeIncidentCursor } from '../../parts/index.ts';
import { readMonitorLink } from '../monitor-link.ts';
import { knownQuery, numberOf } from '../server-list.ts';
import { type AttacksQuery, attacksPage, stateChoices } from './attacks.page.ts';

const pageSize = 100;
const text = Type.Optional(Type.String({ maxLength: 60 }));
const Query = Type.Object({
  state: text,
  class: text,
  severity: text,
  server: text,
  tenant: text,
  after: text,
});

export function registerAttacks(
  app: App,
  deps: {
    protectIncidents: ProtectIncidents;
    signOn: SignOn<Actor>;
    clock: Clock;
  },
): void {
  app.get('/attacks/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const query = knownQuery<AttacksQuery>(request.query, known);
    const [found, open, inMonitor] = await Promise.all([
      deps.protectIncidents.listAll(staff.actor, { ...filterOf(query), limit: pageSize + 1 }),
      deps.protectIncidents.countOpen(staff.actor),
      readMonitorLink(deps.signOn),
    ]);
    const attacks = found.slice(0, pageSize);
    const last = attacks.at(-1);
    const url = withQuery('/console/attacks/', { ...query, after: undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: writeIncidentCursor(last) }) : undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, attacksPage({ staff, attacks, open, query, url, nextHref, inMonitor, nowMs }));
  });
}

const known = {
  state: (value: string) => stateChoices.some((choice) => choice.value === value),
  class: (value: string) => attackClasses.some((name) => name === value),
  severity: (value: string) => value === 'info',
  after: (value: string) => readIncidentCursor(value) !== undefined,
};

function filterOf({
  state,
  class: name,
  severity,
  server,
  tenant,
  after,
}: AttacksQuery): Omit<AttackQuery, 'limit'> {
  return {
    states: stateChoices.find((choice) => choice.value === state)?.states,
    severity: severity === 'info' ? 'info' : 'attack',
    class: name,
    serverId: numberOf(server),
    tenantId: numberOf(tenant),
    after: readIncidentCursor(after),
  };
}
