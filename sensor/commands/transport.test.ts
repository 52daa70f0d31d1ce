// Slow: starts a dozen sensors, each with a monitor.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { makeCertificates } from '#common/transport/testing/certificates.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const svc = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const words = ['--disable-warning=ExperimentalWarning', svc, 'sensor'];
const identity = {
  sensor_id: 5,
  site_id: 1,
  site_name: 'Test site',
  credential: `svcsen_${'a'.repeat(16)}_${'s'.repeat(43)}`,
};
/** TEST-NET-1: no machine has this address, so a request would not be answered. */
const insecureUrl = 'http://192.0.2.1:8090';

function state(t: TestContext, isEnrolled: boolean): string {
  const folder = join(temporaryFolder(t), 'state');
  mkdirSync(folder, { mode: 0o700 });
  if (isEnrolled) writeFileSync(join(folder, 'credential.json'), JSON.stringify(identity), { mode: 0o600 });
  return folder;
}

function call(command: string[], environment: Record<string, string>) {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment };
  return spawnSync(process.execPath, [...words, ...command], {
    env,
    encoding: 'utf8',
    input: 'token-1\n',
    timeout: 60_000,
  });
}

test('enrol and the first run send no token to an http address of another machine, and name the setting that allows it', (t) => {
  const settings = {
    SVC_MONITOR_URL: insecureUrl,
    SVC_SENSOR_STATE_DIR: state(t, false),
    SVC_SENSOR_CAPTURES: 'uplink:lo',
    SVC_SENSOR_ENROLMENT_TOKEN: 'token-1',
  };
  const sentence =
    /svc: http:\/\/192\.0\.2\.1:8090 is not encrypted, so secrets are not sent to it\. Give SVC_MONITOR_URL an https address\. .* add this line to the sensor's environment instead: SVC_ALLOW_INSECURE_HTTP=1/;
  for (const command of ['enrol', 'run']) {
    const answer = call([command], settings);
    assert.equal(answer.status, 1, answer.stderr);
    assert.match(answer.stderr, sentence);
  }
  const packaged = call(['enrol'], { ...settings, SVC_COMMAND_NAME: 'svc-sensor' });
  assert.match(packaged.stderr, /line to \/etc\/svc-sensor\/sensor\.env instead: SVC_ALLOW_INSECURE_HTTP=1/);
});

test('check reports a clear-text address as bad, and as a warning when the setting allows it', (t) => {
  const SVC_SENSOR_STATE_DIR = state(t, true);
  const settings = { SVC_MONITOR_URL: insecureUrl, SVC_SENSOR_STATE_DIR };
  const refused = call(['check', '--interface', 'lo'], settings);
  assert.equal(refused.status, 1);
  assert.match(refused.stdout, /BAD {2,}monitor {2,}.*not encrypted.*SVC_ALLOW_INSECURE_HTTP=1/);
  // No request goes out: fetch calls no server of this port.
  const url = 'http://192.0.2.1:9';
  const allowed = call(['check', '--interface', 'lo'], {
    ...settings,
    SVC_MONITOR_URL: url,
    SVC_ALLOW_INSECURE_HTTP: '1',
  });
  assert.match(allowed.stdout, /WARN {2,}transport {2,}http:\/\/192\.0\.2\.1:9 is not encrypted/);
  assert.match(allowed.stdout, /BAD {2,}monitor {2,}The monitor at http:\/\/192\.0\.2\.1:9 did not answer/);
});

test('an enrolled sensor continues to collect while its http address is refused, and sends nothing', async (t) => {
  const folder = state(t, true);
  writeFileSync(
    join(folder, 'plan.json'),
    JSON.stringify({ plan_version: 1, local_cidrs: ['192.0.2.0/24'], protected_targets: [] }),
  );
  const child = spawn(process.execPath, [...words, 'run'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      SVC_MONITOR_URL: insecureUrl,
      SVC_SENSOR_STATE_DIR: folder,
      SVC_SENSOR_REPLAY: fileURLToPath(new URL('../../demo/recording.pcap', import.meta.url)),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  let said = '';
  for await (const piece of child.stderr) {
    const wasListening = said.includes('is replayed');
    said += piece;
    if (!wasListening && said.includes('is replayed')) child.kill('SIGTERM');
  }
  assert.deepEqual(await ended, [0, null], said);
  assert.match(
    said,
    /nothing is sent: the address of the monitor is not encrypted.*SVC_ALLOW_INSECURE_HTTP=1/,
  );
  assert.match(said, /using the stored plan/);
  const spool = createSpool({
    directory: folder,
    bytesMax: 160 * 1024 * 1024,
    sensorVersion: '0.1.0',
    kinds: recordKinds,
    clock: systemClock,
    reporter: silentReporter,
  });
  spool.open();
  assert.ok(spool.status().pendingUploads >= 1, 'the open minute waits');
  spool.close();
});

test('NODE_EXTRA_CA_CERTS names an authority of the provider; without it the refusal says so', async (t) => {
  const { key, certificate, authorityFile } = makeCertificates(temporaryFolder(t));
  const server = createServer({ key, cert: certificate }, (request, response) => {
    request.resume().on('end', () => {
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(identity));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const enrol = async (environment: Record<string, string>) => {
    const child = spawn(process.execPath, [...words, 'enrol', '--token', 'token-1'], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        SVC_MONITOR_URL: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
        SVC_SENSOR_STATE_DIR: state(t, false),
        ...environment,
      },
    });
    t.after(() => child.kill('SIGKILL'));
    let said = '';
    child.stdout.on('data', (piece) => {
      said += piece;
    });
    child.stderr.on('data', (piece) => {
      said += piece;
    });
    const [status] = await once(child, 'close');
    return { status, said };
  };
  const unknown = await enrol({});
  assert.equal(unknown.status, 1);
  assert.match(unknown.said, /set NODE_EXTRA_CA_CERTS to the file with its certificate/);
  assert.deepEqual(await enrol({ NODE_EXTRA_CA_CERTS: authorityFile }), {
    status: 0,
    said: 'Enrolled on site Test site as sensor 5.\n',
  });
});
