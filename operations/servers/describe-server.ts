/** What owners say of their servers: name, host name, labels. Changes words only; the guest is not touched. */
import type { Actor } from '#operations/accounts/index.ts';
import { notFound, requireWriter } from './authorise.ts';
import type { ServersDeps } from './index.ts';
import { type FieldFault, invalidServer } from './server-faults.ts';
import * as store from './store.ts';

export interface DescribeServerInput {
  name?: string | undefined;
  hostname?: string | undefined;
  /** Merged into what there is; null takes a label away. */
  labels?: Readonly<Record<string, string | null>> | undefined;
}

const labelsMax = 32;
const namePattern = /^\S(.*\S)?$/;
const hostnamePattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
const labelPattern = /^[A-Za-z0-9._/-]{1,63}$/;

/** Throws `servers.not_found`, `servers.invalid` and `accounts.forbidden`. A server of any state may be described. */
export async function describeServer(
  deps: ServersDeps,
  actor: Actor,
  scope: store.Scope,
  serverId: number,
  input: DescribeServerInput,
): Promise<void> {
  if ((await store.findServer(deps.pool(), scope, serverId)) === null) throw notFound();
  requireWriter(actor);
  const faults = wordFaults(input);
  if (faults.length > 0) throw invalidServer(faults);
  const isChanged = await deps
    .db()
    .transaction()
    .execute(async (tx) => {
      const words = await store.lockWords(tx, scope, serverId);
      if (words === null) return false;
      const labels = mergeLabels(words.labels, input.labels ?? {});
      if (Object.keys(labels).length > labelsMax)
        throw invalidServer([
          { path: 'labels', code: 'maxProperties', message: `a server has at most ${labelsMax} labels` },
        ]);
      await store.updateWords(tx, serverId, {
        name: input.name ?? words.name,
        hostname: input.hostname ?? words.hostname,
        labels,
      });
      return true;
    });
  if (!isChanged) throw notFound();
}

/** What is wrong with the words of a server, whether it is there already or being ordered. */
export function wordFaults(input: DescribeServerInput): FieldFault[] {
  const faults: FieldFault[] = [];
  const check = (path: string, isRight: boolean, message: string) => {
    if (!isRight) faults.push({ path, code: 'pattern', message });
  };
  const { name, hostname, labels } = input;
  if (name !== undefined)
    check(
      'name',
      name.length <= 64 && namePattern.test(name),
      'must be 1 to 64 characters without spaces around them',
    );
  if (hostname !== undefined)
    check(
      'hostname',
      hostname.length <= 253 && hostnamePattern.test(hostname),
      'must be a host name in lower case',
    );
  for (const [key, value] of Object.entries(labels ?? {})) {
    check(`labels.${key}`, labelPattern.test(key), 'a label is named by letters, digits and . _ / -');
    check(`labels.${key}`, (value ?? '').length <= 255, 'must be at most 255 characters');
  }
  return faults;
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
