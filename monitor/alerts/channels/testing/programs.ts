/** The real Alertmanager and rsyslog of Debian, for channels that tell them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';

const programs = {
  alertmanager: '/usr/bin/prometheus-alertmanager',
  rsyslog: '/usr/sbin/rsyslogd',
  tls: '/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so',
};
export const hasPrograms = Object.values(programs).every((file) => existsSync(file));

export async function startAlertmanager() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-alertmanager-'));
  writeFileSync(join(folder, 'config.yml'), 'route: { receiver: none }\nreceivers: [{ name: none }]\n');
  const words = [
    ...[`--config.file=${folder}/config.yml`, `--storage.path=${folder}`],
    ...['--web.listen-address=127.0.0.1:0', '--cluster.listen-address='],
  ];
  const child = spawn(programs.alertmanager, words, { stdio: ['ignore', 'ignore', 'pipe'] });
  const address = await firstMatch(createInterface({ input: child.stderr }), /Listening on" address=(\S+)/);
  const url = `http://${address}`;
  return {
    url,
    /** The alerts that are active by its own clock. */
    active: async (): Promise<
      { labels: Record<string, string>; annotations: Record<string, string>; endsAt: string }[]
    > => (await (await fetch(`${url}/api/v2/alerts?active=true`)).json()) as never,
    /** By its own clock. */
    nowMs: async () => Date.parse((await fetch(`${url}/-/ready`)).headers.get('date')!),
    [Symbol.asyncDispose]: () => stop(child, folder),
  };
}

export async function startRsyslog() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-rsyslog-'));
  const file = (name: string) => join(folder, name);
  const make = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2000',
  ];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  spawnSync('openssl', [...make, ...names, '-keyout', file('key.pem'), '-out', file('certificate.pem')]);
  spawnSync('mkfifo', [file('lines')]);
  writeFileSync(
    file('rsyslog.conf'),
    `global(DefaultNetstreamDriver="gtls" DefaultNetstreamDriverCAFile="${file('certificate.pem')}"
      DefaultNetstreamDriverCertFile="${file('certificate.pem')}" DefaultNetstreamDriverKeyFile="${file('key.pem')}")
    module(load="imtcp" StreamDriver.Name="gtls" StreamDriver.Mode="1" StreamDriver.AuthMode="anon")
    input(type="imtcp" port="0" listenPortFileName="${file('listens')}")
    template(name="line" type="string" string="%pri% %app-name% %msgid% %msg%\\n")
    action(type="ompipe" pipe="${file('lines')}" template="line")
    `,
  );
  const reader = spawn('cat', [file('lines')], { stdio: ['ignore', 'pipe', 'ignore'] });
  const child = spawn(programs.rsyslog, ['-n', '-i', file('pid'), '-f', file('rsyslog.conf')], {
    stdio: 'ignore',
  });
  while (!existsSync(file('listens')) || readFileSync(file('listens'), 'utf8') === '')
    await new Promise((resolve) => setTimeout(resolve, 20));
  const lines = createInterface({ input: reader.stdout });
  return {
    port: Number(readFileSync(file('listens'), 'utf8')),
    /** The certificate for `localhost`, which signs itself. */
    certificate: readFileSync(file('certificate.pem'), 'utf8'),
    /** The next message: priority, name of the program, message id, text. */
    next: async () => ((await once(lines, 'line')) as [string])[0],
    async [Symbol.asyncDispose]() {
      await stop(child, folder);
      reader.kill();
    },
  };
}

async function firstMatch(lines: Interface, pattern: RegExp): Promise<string> {
  for await (const line of lines) {
    const found = pattern.exec(line);
    if (found) return found[1]!;
  }
  throw new Error(`no line of the program matches ${pattern}`);
}

async function stop(child: ChildProcess, folder: string): Promise<void> {
  const exited = once(child, 'exit');
  child.kill();
  await exited;
  rmSync(folder, { recursive: true, force: true });
}
