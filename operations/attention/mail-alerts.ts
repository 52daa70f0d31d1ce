import type { Part } from '#common/lifecycle/index.ts';
import { type Accounts, systemActor } from '#operations/accounts/index.ts';
import { createLeasedLoop, ifHeld, type LoopDeps } from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { createDatabaseWatch, type System } from '#service-kit/system/index.ts';
import { describeItem } from './describe-item.ts';
import { type AttentionItem, findAttentionItems, notCounted } from './item.ts';
import { type ReadFactsDeps, readAttentionFacts } from './read-facts.ts';
import * as store from './store.ts';

export interface AlertDeps extends ReadFactsDeps, LoopDeps {
  accounts: Pick<Accounts, 'listStaff'>;
  system: Pick<System, 'read' | 'checkWrites'>;
  post: Pick<Post, 'send' | 'canSend' | 'linkTo'>;
}

/** The loop that mails, and the watch over the database, whose trouble no loop can store. */
export function createAlertLoop(deps: AlertDeps): Part[] {
  const { db, clock, reporter } = deps;
  const sinceMs = clock.monotonicMs();
  const loop = createLeasedLoop({
    ...{ name: 'operations.attention', intervalMs: 30_000, ttlSeconds: 120, db, clock, reporter },
    async run(lease) {
      const watchingSeconds = (clock.monotonicMs() - sinceMs) / 1000;
      const nowMs = clock.nowMs();
      const facts = await readAttentionFacts(deps, systemActor, nowMs, watchingSeconds);
      const items = findAttentionItems({ ...facts, ...notCounted }, nowMs).filter(isMailed);
      const found = items.map((item) => ({ key: keyOf(item), ...describeItem(item) }));
      await ifHeld(db(), lease, (trx) => store.keepAlerts(trx, found));
      for (const due of await store.listDue(db())) {
        if (await mail(deps, due)) await ifHeld(db(), lease, (trx) => store.noteMailed(trx, due.key));
      }
    },
  });
  const watch = createDatabaseWatch({
    ...{ ...deps, program: 'operations', listRecipients: () => listOperators(deps) },
    checkWrites: () => deps.system.checkWrites(),
  });
  return [loop, watch];
}

const isMailed = ({ kind, urgency }: AttentionItem) =>
  urgency === 'now' && kind !== 'attacks' && kind !== 'attacks_stale';

function keyOf(item: AttentionItem): string {
  if (item.kind === 'system') return item.subject.key;
  if (item.kind === 'monitor_silent') return `monitor:${item.project.id}`;
  if (item.kind === 'nodes_away' && item.nodes.length === 1) return `node:${item.nodes[0]!.id}`;
  return item.kind;
}

async function listOperators({ accounts }: AlertDeps): Promise<string[]> {
  const staff = await accounts.listStaff(systemActor);
  return staff
    .filter(({ isActive, staffRole }) => isActive && staffRole === 'operator')
    .map(({ email }) => email);
}

/** False where no mail was taken: it is tried again. */
async function mail(deps: AlertDeps, { title, text, href, isOver }: store.DueAlert): Promise<boolean> {
  const { post, reporter } = deps;
  if (!post.canSend) return false;
  const subject = isOver ? `Resolved: ${title}` : title;
  const body = `${isOver ? 'This is over.' : text}\n\n${post.linkTo(href)}\n`;
  let wasSent = false;
  for (const to of await listOperators(deps)) {
    const fault = await post.send({ to, subject: `operations: ${subject}`, text: body });
    if (fault === null) wasSent = true;
    else reporter.warn('an alert was not mailed', { subject, why: fault });
  }
  return wasSent;
}
