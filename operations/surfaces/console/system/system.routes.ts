/** `/console/system/`: the state of operations itself. */
import type { Clock } from '#common/clock/index.ts';
import {
  findAttentionItems,
  notCounted,
  type ReadFactsDeps,
  readAttentionFacts,
} from '#operations/attention/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { readQueueState } from '#service-kit/jobs/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { sendWantedFile } from '#service-kit/web/index.ts';
import { systemPage } from './system.page.ts';

export interface SystemDeps extends ReadFactsDeps {
  db: () => Queryable;
  clock: Clock;
}

/** What concerns operations itself, not the servers and customers on it. */
const ownKinds: ReadonlySet<string> = new Set(['system', 'monitor_silent', 'limits_apart', 'webhooks_late']);

export function registerSystem(app: App, deps: SystemDeps): void {
  app.get('/system/', async (request, reply) => {
    const staff = request.staff!;
    const nowMs = deps.clock.nowMs();
    const [facts, state, jobs] = await Promise.all([
      readAttentionFacts(deps, staff.actor, nowMs),
      deps.system.read(),
      readQueueState(deps.db()),
    ]);
    const items = findAttentionItems({ ...facts, ...notCounted }, nowMs);
    const own = items.filter(({ kind }) => ownKinds.has(kind));
    const page = systemPage(request, { staff, items: own, facts, state, jobs });
    return sendWantedFile(request, reply, 'operations') ?? sendPage(reply, page);
  });
}
