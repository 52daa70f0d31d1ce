/**
 * The monitor's part of the demo world: people, one site, its cluster, and a token for the sensor; where the demo asks for it a
 * simulated site, and tokens for its sensors.
 *
 * Seeding runs at every start and changes nothing that exists. Enrolment tokens are new each time, because they are
 * valid for an hour only. The file with the logins is written last, by rename, when everything is ready.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Part } from '#common/lifecycle/index.ts';
import { type SignOn, seedSignOn } from '#service-kit/sign-on/index.ts';
import type { MonitorConfig } from '../config.ts';
import type { Connection } from '../operations-client/index.ts';
import { type Actor, type Operators, systemActor } from '../operators/index.ts';
import type { Probes } from '../probes/index.ts';
import type { Sensors } from '../sensors/index.ts';
import type { Site, Sites } from '../sites/index.ts';

interface Login {
  email: string;
  password: string;
}

interface DemoFile {
  monitor_operator: Login;
  monitor_viewer: Login;
  site_id: number;
  enrolment_token: string;
  /** Null: there is none. */
  simulated_site_id: number | null;
  simulated_tokens: Record<string, string>;
}

interface DemoWorldDeps {
  operators: Operators;
  sites: Sites;
  sensors: Sensors;
  probes: Pick<Probes, 'list' | 'add'>;
  connection: Pick<Connection, 'save' | 'setNoticeSecret'>;
  signOn: SignOn<Actor>;
}

const siteName = 'Demo site';
const simulatedSiteName = 'Simulated site';

export function createDemoWorld(config: MonitorConfig, deps: DemoWorldDeps): Part {
  return {
    name: 'demo world',
    async start() {
      const path = join(config.programDir, 'demo.json');
      const before = await readBefore(path);
      const operator = before?.monitor_operator ?? newLogin('operator@monitor.example');
      const viewer = before?.monitor_viewer ?? newLogin('viewer@monitor.example');
      await deps.operators.add({ ...operator, name: 'Olga Operator', role: 'operator' });
      await deps.operators.add({ ...viewer, name: 'Victor Viewer', role: 'viewer' });
      const site = await seedSite(config, deps.sites);
      await seedConnection(config, deps.connection);
      await seedProbes(config, deps.probes, site.id);
      if (config.demoSignOn)
        await seedSignOn(deps.signOn, systemActor, config.demoSignOn, deps.operators.people.findByEmail);
      const node = config.demoNode ? { name: config.demoNode, clusterId: null } : null;
      // A demo whose sensor lost its directory enrols it again.
      const place = { node, replaces: node !== null };
      const { token } = await deps.sensors.createToken(systemActor, site.id, place);
      await writeWhole(path, {
        monitor_operator: operator,
        monitor_viewer: viewer,
        site_id: site.id,
        enrolment_token: token,
        ...(await seedSimulatedSite(config, deps)),
      });
    },
    async stop() {},
  };
}

/** The existing site, or a new one. Its prefixes are set at creation and may be changed in the console. */
async function seedSite(config: MonitorConfig, sites: Sites): Promise<Site> {
  let site = (await sites.list()).find((known) => known.name === siteName);
  if (!site) {
    const made = await sites.create(systemActor, siteName);
    site = (await sites.setLocalCidrs(systemActor, made.id, splitList(config.demoLocalCidrs))) ?? made;
  }
  if (config.demoClusterId > 0) await sites.mapCluster(systemActor, config.demoClusterId, site.id);
  return site;
}

/** Makes the simulated site where it is missing. Tokens by node, which replace the sensors that these nodes may have. */
async function seedSimulatedSite(
  config: MonitorConfig,
  { sites, sensors }: Pick<DemoWorldDeps, 'sites' | 'sensors'>,
): Promise<Pick<DemoFile, 'simulated_site_id' | 'simulated_tokens'>> {
  const cidrs = splitList(config.demoSimulatedCidrs);
  if (cidrs.length === 0) return { simulated_site_id: null, simulated_tokens: {} };
  let site = (await sites.list()).find((known) => known.isSimulated);
  if (!site) {
    site = await sites.create(systemActor, simulatedSiteName, { isSimulated: true });
    await sites.setLocalCidrs(systemActor, site.id, cidrs);
  }
  const { demoSimulatedClusterId: clusterId } = config;
  if (clusterId > 0) await sites.mapCluster(systemActor, clusterId, site.id);
  const tokens: Record<string, string> = {};
  for (const name of splitList(config.demoSimulatedNodes)) {
    const place = { node: { name, clusterId: null }, replaces: true };
    tokens[name] = (await sensors.createToken(systemActor, site.id, place)).token;
  }
  return { simulated_site_id: site.id, simulated_tokens: tokens };
}

function splitList(text: string | null): string[] {
  return (text ?? '').split(',').filter((part) => part.trim() !== '');
}

async function seedConnection(config: MonitorConfig, connection: DemoWorldDeps['connection']): Promise<void> {
  const { demoOperationsUrl, demoOperationsToken, demoNoticeSecret } = config;
  if (demoOperationsUrl && demoOperationsToken) {
    const input = { baseUrl: demoOperationsUrl, token: demoOperationsToken, isEnabled: true };
    await connection.save(systemActor, input);
  }
  if (demoNoticeSecret) await connection.setNoticeSecret(systemActor, demoNoticeSecret);
}

/** Creates probes once; later changes by the operator stay. */
async function seedProbes(config: MonitorConfig, probes: DemoWorldDeps['probes'], siteId: number) {
  if (!config.demoProbes || (await probes.list(siteId)).length > 0) return;
  const names: Record<string, string> = { icmp: 'Provider gateway', dns: 'Resolver' };
  for (const text of config.demoProbes.split(',')) {
    const [kind = '', target = ''] = text.split(':');
    const input = {
      name: names[kind] ?? text,
      kind,
      target,
      question: kind === 'dns' ? 'www.example.com' : null,
    };
    await probes.add(systemActor, siteId, { ...input, intervalSeconds: 10, timeoutMs: 1_000 });
  }
}

function newLogin(email: string): Login {
  return { email, password: randomBytes(8).toString('hex') };
}

async function readBefore(path: string): Promise<DemoFile | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as DemoFile;
  } catch (error) {
    // A missing or damaged file is created again; other errors are shown to the operator.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return null;
    throw error;
  }
}

async function writeWhole(path: string, content: DemoFile): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path);
}
