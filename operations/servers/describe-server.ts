/** What owners say of their servers: name, host name, labels. Changes current only; the guest is not touched. */

import { type Actor, requireWriter } from '#operations/accounts/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import { findServer } from '#operations/views/server-store.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import { notFound } from './authorise.ts';
import type { ChangeHooks } from './change-server.ts';
import type { ServersDeps } from './index.ts';
import * as store from './store.ts';
import { invalidServer, validateServerFields } from './validate-server-fields.ts';

export interface DescribeServerInput {
  name?: string | undefined;
  hostname?: string | undefined;
  /** Merged into what there is; null takes a label away. */
  labels?: Readonly<Record<string, string | null>> | undefined;
}

const labelsMax = 32;

/** Throws `servers.not_found`, `servers.invalid` and `accounts.forbidden`. A server of any state may be described. */
export async function describeServer(
  deps: ServersDeps,
  actor: Actor,
  scope: Scope,
  serverId: number,
  input: DescribeServerInput,
  precondition?: ChangeHooks['precondition'],
): Promise<void> {
  const server = await findServer(deps.db(), scope, serverId);
  if (server === null) throw notFound();
  requireWriter(actor);
  const faults = validateServerFields(input);
  if (faults.length > 0) throw invalidServer(faults);
  const isChanged = await inTransaction(deps.db(), async (tx) => {
    const current = await store.lockDescription(tx, scope, serverId);
    if (current === null) return false;
    await precondition?.(tx);
    const labels = mergeLabels(current.labels, input.labels ?? {});
    if (Object.keys(labels).length > labelsMax)
      throw invalidServer([
        { path: 'labels', code: 'maxProperties', message: `a server has at most ${labelsMax} labels` },
      ]);
    const next = { name: input.name ?? current.name, hostname: input.hostname ?? current.hostname, labels };
    await store.updateDescription(tx, serverId, next);
    const { name, hostname } = current;
    await record(tx, actor, {
      operation: 'server.describe',
      subject: { kind: 'server', id: serverId, name: next.name },
      tenantId: server.tenantId,
      ...changedMembers({ name, hostname, labels: current.labels }, next),
    });
    return true;
  });
  if (!isChanged) throw notFound();
}

function mergeLabels(
  before: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged = new Map<string, string>(Object.entries(before));
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}
