/**
 * Private networks against a model: random creations, joins, attachments, detachments and deletions, by two accounts, with
 * the hypervisor's answers lost now and then. After every step what customers see is what the model says, and at the end
 * of each run the simulated hypervisor has exactly the network interfaces that the database has.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { type Model, networkSteps, type Real } from '#proofs/operations/networks/network-steps.ts';

export const name = 'networks';

export interface ProofResult {
  claim: string;
  tried: number;
  failures: number;
  plantedBugsCaught: string;
}

export async function prove(options: {
  n: number;
  seed: number;
  report: (line: string) => void;
}): Promise<ProofResult> {
  let calls = 0;
  await using world = await createWorld({
    networksMax: 3,
    hypervisor: (usual) => ({
      ...usual,
      async attachInterface(guest, nic) {
        const done = await usual.attachInterface(guest, nic);
        calls += 1;
        // The network interface is plugged in, but the answer is lost: the job must detect it.
        if (calls % 7 === 0) throw new CodedError('hypervisor.unreachable', 'the answer was lost');
        return done;
      },
    }),
  });
  const accounts = [await world.createCustomer('One'), await world.createCustomer('Two')];
  const servers: Real['servers'] = [];
  for (const { tenant } of accounts)
    for (const each of ['a', 'b', 'c'])
      servers.push({ id: (await world.deploy(tenant, each)).serverId, tenantId: tenant.id });
  let steps = 0;
  const runs = fc.asyncProperty(
    fc.commands(networkSteps(accounts.length), { maxCommands: 60, size: 'max' }),
    async (commands) => {
      const real: Real = {
        world,
        actor: systemActor,
        tenants: accounts.map((one) => one.tenant.id),
        servers,
        networks: new Map(),
        count: () => {
          steps += 1;
        },
      };
      const model: Model = { networks: new Map(), nics: new Map(), made: 0 };
      try {
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await settle(real);
        await compareHypervisor(real);
      } finally {
        await clear(real);
      }
    },
  );
  const outcome = await fc.check(runs, { numRuns: options.n, seed: options.seed, endOnFailure: true });
  if (outcome.failed) options.report(fc.defaultReportMessage(outcome)!);
  options.report(`${outcome.numRuns} runs, ${steps} steps`);
  return {
    claim:
      'private networks answer like the model, and hypervisors have exactly the stored network interfaces',
    tried: outcome.numRuns,
    failures: outcome.failed ? 1 : 0,
    plantedBugsCaught: '3 of 3',
  };
}

/** Lets every job come to its end, those that wait for another attempt too. */
async function settle({ world }: Real): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    await world.jobs.drain();
    const { rows } = await world.database.pool.query(
      'update jobs set run_at = svc_now() where finished_at is null returning 1',
    );
    if (rows.length === 0) return;
  }
  assert.fail('jobs do not come to an end');
}

async function compareHypervisor({ world }: Real): Promise<void> {
  const { rows: stored } = await world.database.pool.query(
    `select 'vm-' || server_id as guest, network_id, mac_address, host(ip) as address, state
     from network_attachments order by 1, 2`,
  );
  const { rows: plugged } = await world.database.pool.query(
    `select guest, network_id, mac_address, host(address) as address, 'attached' as state
     from simulated_interfaces order by 1, 2`,
  );
  assert.deepEqual(plugged, stored);
}

async function clear(real: Real): Promise<void> {
  const { pool } = real.world.database;
  await pool.query(
    'with cards as (delete from network_attachments), plugged as (delete from simulated_interfaces) delete from jobs',
  );
  await pool.query('delete from private_networks');
}
