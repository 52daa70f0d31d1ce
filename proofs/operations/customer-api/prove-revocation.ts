import { systemActor } from '#operations/accounts/index.ts';
import { createRawClient, type RawClient } from '#operations/surfaces/customer-api/testing/raw-client.ts';
import { createFleet, type Fleet } from './api-fleet.ts';
import type { PlantedBug } from './api-process.ts';

/** How a key loses its right, by turns. */
const causes = ['revoked', 'narrowed', 'member removed', 'person deactivated', 'expired'] as const;
type Cause = (typeof causes)[number];

/**
 * G5: while several processes serve a key, it loses its right; no call that begins after that was done succeeds anywhere.
 * `lateSuccesses` counts those that did.
 */
export async function proveRevocation(options: {
  rounds: number;
  processes: number;
  bug?: PlantedBug;
}): Promise<{ rounds: number; calls: number; lateSuccesses: number }> {
  await using fleet = await createFleet({
    processes: options.processes,
    keys: 1,
    bug: options.bug ?? null,
  });
  const clients = fleet.urls.map((url) => createRawClient(url, 4));
  const member = await fleet.features.accounts.createPerson(systemActor, {
    email: 'member@example.test',
    name: 'Member',
    password: 'a member of the fleet',
  });
  let [calls, lateSuccesses] = [0, 0];
  for (let round = 0; round < options.rounds; round += 1) {
    const cause = causes[round % causes.length]!;
    const token = await issue(fleet, cause, member.id);
    const round_ = await playRound(fleet, clients, token, () => takeAway(fleet, cause, token, member.id));
    calls += round_.calls;
    lateSuccesses += round_.lateSuccesses;
    await fleet.features.apiKeys.revokeKey(systemActor, token.split('_')[1]!);
    if (cause === 'person deactivated')
      await fleet.features.accounts.setPersonActive(systemActor, member.id, true);
  }
  for (const client of clients) client[Symbol.dispose]();
  return { rounds: options.rounds, calls, lateSuccesses };
}

async function playRound(
  fleet: Fleet,
  clients: readonly RawClient[],
  token: string,
  takeAwayRight: () => Promise<unknown>,
): Promise<{ calls: number; lateSuccesses: number }> {
  const state = { isGone: false, isOver: false, calls: 0, lateSuccesses: 0, successes: 0 };
  const ask = async (client: RawClient) => {
    const isLate = state.isGone;
    const headers = [['authorization', `Bearer ${token}`]] as const;
    const { status } = await client.send({ method: 'GET', path: '/api/v2/servers/1', headers });
    state.calls += 1;
    if (status === 404) state.successes += 1;
    if (status !== 401 && isLate) state.lateSuccesses += 1;
    if (status !== 401 && status !== 404) throw new Error(`an answer of ${status} proves nothing`);
  };
  const askers = clients.map(async (client) => {
    while (!state.isOver) await ask(client);
  });
  while (state.successes < fleet.urls.length) await new Promise((wake) => setImmediate(wake));
  await takeAwayRight();
  state.isGone = true;
  await Promise.all(clients.flatMap((client) => [ask(client), ask(client)]));
  state.isOver = true;
  await Promise.all(askers);
  return state;
}

async function issue(fleet: Fleet, cause: Cause, memberId: number): Promise<string> {
  const { accounts, apiKeys } = fleet.features;
  const { organizationId } = fleet.tenant;
  const isMembers = cause === 'member removed' || cause === 'person deactivated';
  if (isMembers) await accounts.addMember(systemActor, organizationId, memberId);
  const { token } = await apiKeys.issueKey(systemActor, {
    organizationId,
    personId: isMembers ? memberId : fleet.owner.id,
    name: cause,
    scope: 'full',
    tenantIds: cause === 'narrowed' ? [fleet.tenant.id] : null,
  });
  return token;
}

async function takeAway(fleet: Fleet, cause: Cause, token: string, memberId: number): Promise<unknown> {
  const { accounts, apiKeys } = fleet.features;
  const keyId = token.split('_')[1]!;
  switch (cause) {
    case 'revoked':
      return apiKeys.revokeKey(systemActor, keyId);
    case 'narrowed':
      return apiKeys.narrowKey(systemActor, keyId, []);
    case 'member removed':
      return accounts.removeMember(systemActor, fleet.tenant.organizationId, memberId);
    case 'person deactivated':
      return accounts.setPersonActive(systemActor, memberId, false);
    case 'expired':
      return fleet.pool.query('update api_keys set expires_at = svc_now() where key_id = $1', [keyId]);
  }
}
