/** Alerts of potential vulnerabilities follow what is found, not what a scan had the time for. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  type AssessWorld,
  addressOf,
  openssh,
  startAssessWorld,
} from '#monitor/vulnerabilities/testing/assess-world.ts';

let world: AssessWorld;
before(async () => {
  world = await startAssessWorld();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.pool.query(
    `truncate scan_attempts, scan_observations, scan_identifications, vulnerability_servers, vulnerability_software,
      vulnerability_products, vulnerability_advisories, alert_episodes, events, leases cascade`,
  );
  await world.copyRecords();
});

const vulnerable = openssh('9.6');
const mended = openssh('10.0');
const unidentified: typeof vulnerable = {
  ...{ ...vulnerable, product: null, version: null, method: 'table', confidence: 3, cpe: [] },
};

/** The resolutions of the server's alerts in their order; null of one that is open. */
async function scan(service: Parameters<AssessWorld['scan']>[1][0], endedAgo: number, state?: 'partial') {
  await world.scan(addressOf(1), [service], { endedAgo, ...(state && { state }) });
  return assess();
}

async function assess() {
  await world.assess();
  const rows = await world.rows<{ resolution: string | null }>(
    "select resolution from alert_episodes where kind = 'findings_new' order by id",
  );
  return rows.map(({ resolution }) => resolution);
}

test('NET-2.7.5: a scan that ends before identification leaves findings and their alert', async () => {
  assert.deepEqual(await scan(vulnerable, 900), [null]);
  const before = (await world.vulnerabilities.readServer(7, 1))!;
  assert.deepEqual(await scan(unidentified, 600, 'partial'), [null]);
  const { server, services } = (await world.vulnerabilities.readServer(7, 1))!;
  assert.deepEqual([server.high, server.critical], [before.server.high, before.server.critical]);
  assert.deepEqual(
    services.map(({ version, scanId, observedAtMs }) => [version, scanId, observedAtMs]),
    before.services.map(({ version, scanId, observedAtMs }) => [version, scanId, observedAtMs]),
    'the evidence is the scan that identified it',
  );
});

test('an alert ends with its findings, and opens again when they come back', async () => {
  assert.deepEqual(await scan(vulnerable, 900), [null]);
  assert.deepEqual(await scan(mended, 600), ['recovered']);
  assert.deepEqual(await scan(vulnerable, 300), ['recovered', null]);
  assert.deepEqual(await scan(vulnerable, 200), ['recovered', null], 'and stays');
  const [open] = await world.rows<{ details: { first: string; found: number } }>(
    'select details from alert_episodes where resolved_at is null',
  );
  assert.match(open!.details.first, /^CVE-\d+-\d+ at tcp\/22 \(OpenSSH 9\.6\)$/);
  assert.ok(open!.details.found > 0);
});

test('a service that hides its version has not been mended', async () => {
  assert.deepEqual(await scan(vulnerable, 900), [null]);
  assert.deepEqual(await scan({ ...vulnerable, version: null, cpe: [] }, 600), ['removed']);
});

test('findings whose evidence expired have not recovered', async () => {
  assert.deepEqual(await scan(vulnerable, 900), [null]);
  await world.pool.query(`
    update scan_observations set observed_at = observed_at - interval '7 days';
    update scan_identifications set identified_at = identified_at - interval '7 days';
    update vulnerability_services set observed_at = observed_at - interval '7 days';
    update vulnerability_servers set due_at = svc_now(), expires_at = svc_now()`);
  assert.deepEqual(await assess(), ['removed']);
});
