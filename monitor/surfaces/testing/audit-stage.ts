/** A monitor with what the requests of audited routes need. */
import { allCapabilities, startOperationsStub } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { startMonitorServer, testPassword } from '#monitor/testing/server.ts';
import { casesOf, textsOf } from '#service-kit/audit/testing/audited-routes.ts';

export const operatorEmail = 'operator@monitor.example';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}
export type Stage = Awaited<ReturnType<typeof createStage>>;

export async function createStage() {
  const stub = await startOperationsStub();
  stub.capabilities = { ...allCapabilities };
  const server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  const operator = await server.signIn('operator');
  let made = 0;
  const next = () => {
    made += 1;
    return made;
  };
  const row = async (text: string) => (await database.pool.query(text)).rows[0].id as number;
  const channel = async () => {
    const name = `channel ${next()}`;
    await monitor.alerts.addChannel(systemActor, {
      ...{ kind: 'email', name, settings: { recipients: 'ops@example.org' } },
    });
    return (await monitor.alerts.listChannels()).find((one) => one.name === name)!.id;
  };
  const colleague = () =>
    monitor.operators.add({
      email: `person-${next()}@example.org`,
      name: 'Person',
      password: testPassword,
      role: 'viewer',
    });
  const token = async () => (await monitor.sensors.createToken(systemActor, siteId)).token;
  return {
    server,
    monitor,
    siteId,
    stub,
    operator,
    next,
    channel,
    colleague,
    token,
    operatorId: async () => (await monitor.operators.list()).find((one) => one.email === operatorEmail)!.id,
    connect: () =>
      monitor.connection.save(systemActor, { baseUrl: stub.url, token: stub.token, isEnabled: true }),
    async sensor() {
      const hostName = `host-${next()}`;
      const request = { token: await token(), host_name: hostName, node: hostName, sensor_version: '0.1.0' };
      const { sensor_id: id, credential } = (await monitor.sensors.enrol(request))!;
      return { id, hostName, credential };
    },
    async probe() {
      const name = `probe ${next()}`;
      const input = { name, kind: 'icmp', target: '192.0.2.1', intervalSeconds: 10, timeoutMs: 1_000 };
      return {
        name,
        id: await monitor.probes.add(systemActor, siteId, { ...input, port: null, question: null }),
      };
    },
    episode: () =>
      row(`insert into alert_episodes (site_id, kind, subject_key, subject_name, details)
        values (${siteId}, 'sensor_silent', 'sensor:${next()}', 'host', '{}') returning id`),
    device: () =>
      row(`insert into devices (site_id, segment, mac, first_seen_at, last_seen_at)
        values (${siteId}, 'br0', '52:54:00:00:00:${String(next() + 16)}', now(), now()) returning id`),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await stub[Symbol.asyncDispose]();
    },
  };
}

/** The case of a form of the console. */
export const form = casesOf((stage: Stage, _, path, fields) => stage.operator.post(path, textsOf(fields)));
