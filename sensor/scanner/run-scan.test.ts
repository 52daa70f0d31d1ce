import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createReadStream,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createTestClock, systemClock } from '#common/clock/index.ts';
import type { Pacer } from './pacing/index.ts';
import { startScan } from './run-scan.ts';
import type { ScanTask } from './scan.ts';

const task: ScanTask = {
  scanId: '0193a1f0-0000-7000-8000-000000000001',
  ...{ address: '198.51.100.7', interfaceName: 'br0', sourceAddress: '198.51.100.1', profile: 'common' },
};

/** Counts nothing: these programs send nothing. */
const uncounted: Pacer = {
  open: async () => ({
    ...{ watch() {}, forget() {}, pause() {}, resume() {}, close() {} },
    ...{ packets: () => 0, holds: () => 0 },
  }),
  close: async () => {},
};

/** A program in the place of nmap, with `$3`… and what of them matters as variables. */
function standIn(t: TestContext, body: string) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-scan-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'nmap');
  const head = `#!/bin/sh
folder=${folder}
case " $* " in *" -sU "*) transport=udp;; *) transport=tcp;; esac
case " $* " in *" -sV "*) phase=identify;; *) phase=discover;; esac
ports=$(echo "$*" | sed -n 's/.* -p [TU]:\\([0-9,]*\\) .*/\\1/p')
echo "$transport $phase $ports" >> "$folder/calls"
begin() { echo "<nmaprun><scaninfo protocol=\\"$transport\\" numservices=\\"$1\\"/><host endtime=\\"5\\"><ports>" >&3; }
open() { echo "Discovered open port $1/$transport on 198.51.100.7"; echo "<port protocol=\\"$transport\\" portid=\\"$1\\"><state state=\\"open\\" reason=\\"syn-ack\\"/>$2</port>" >&3; }
rest() { echo "<extraports state=\\"$1\\" count=\\"$2\\"><extrareasons reason=\\"$3\\" count=\\"$2\\"/></extraports>" >&3; }
finish() { echo "</ports></host><runstats><finished exit=\\"success\\"/></runstats></nmaprun>" >&3; }
`;
  writeFileSync(program, head + body, { mode: 0o755 });
  const procs = join(folder, 'procs');
  const limits = {
    ...{ version: 2 as const, missing: [] },
    enclose: () => ({ procsFiles: [procs], remove() {} }),
  };
  const deps = { clock: systemClock, limits, pacer: uncounted, program };
  const calls = () => {
    const path = join(folder, 'calls');
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  };
  /** Resolves when the program was called like this. */
  const called = async (pattern: RegExp) => {
    const changes = watch(folder);
    while (!calls().some((line) => pattern.test(line))) await once(changes, 'change');
    changes.close();
  };
  return { deps, folder, procs, calls, called };
}

const ordinary = `
if [ $phase = identify ]; then begin 1; open $ports '<service name="ssh" product="OpenSSH" version="9.2p1" method="probed" conf="10"><cpe>cpe:/a:openbsd:openssh:9.2p1</cpe></service>'; finish; exit 0; fi
begin 100
if [ $transport = tcp ]; then open 22 '<service name="ssh" method="table" conf="3"/>'; rest closed 90 reset; rest filtered 9 no-response; else rest 'closed|filtered' 100 no-response; fi
finish`;

test('NET-2.7.5, NET-3.1: discovery and identification are runs apart; filtered and silent ports leave a scan complete', async (t) => {
  const { deps, calls, procs } = standIn(t, ordinary);
  const running = startScan(deps, task);
  const findings = await running.findings;
  assert.deepEqual(calls(), ['tcp discover ', 'udp discover ', 'tcp identify 22']);
  assert.equal(findings.state, 'complete');
  assert.equal(running.fault(), null);
  assert.deepEqual(findings.notes, ['filtered_ports', 'silent_udp']);
  const counts = findings.phases.map((one) => [one.ports_answered, one.filtered, one.silent, one.finished]);
  assert.deepEqual(counts, [
    [91, 0, 9, true],
    [0, 0, 100, true],
  ]);
  const [ssh] = findings.services;
  assert.deepEqual([ssh!.port, ssh!.method, ssh!.version, ssh!.cpe.length], [22, 'probed', '9.2p1', 1]);
  assert.match(readFileSync(procs, 'utf8'), /^\d+\n/, 'it wrote its process id before anything else');
});

test('NET-2.7.5: what discovery found stays when identification fails, and the scan is partial', async (t) => {
  const { deps } = standIn(t, ordinary.replace('begin 1;', 'exit 1;'));
  const { state, services, notes } = await startScan(deps, task).findings;
  assert.deepEqual([state, services.map(({ port, product }) => [port, product])], ['partial', [[22, null]]]);
  assert.ok(notes.includes('identification_failed'));
});

test('NET-7.2: a program that hangs is ended with the scan; what it named as open stays', async (t) => {
  const { deps, procs } = standIn(t, 'begin 100; open 22; open 443; exec sleep 600');
  const running = startScan(deps, task);
  while (running.progress().open.length < 2) await new Promise((resolve) => setImmediate(resolve));
  running.end('withdrawn');
  const { state, services, notes, phases } = await running.findings;
  assert.deepEqual([state, services.map(({ port }) => port), notes], ['partial', [22, 443], ['withdrawn']]);
  assert.deepEqual(
    phases.map(({ transport, finished }) => [transport, finished]),
    [['tcp', false]],
  );
  assert.equal(isAlive(Number(readFileSync(procs, 'utf8'))), false);
});

test('NET-8.3: more than 8 MiB of output end the program and the result is partial', async (t) => {
  for (const flood of ['yes "Discovered open port 22/tcp on x"', 'yes "<port/>" >&3', 'yes x >&2']) {
    const { deps } = standIn(t, `begin 100; ${flood}`);
    const running = startScan(deps, task);
    const { state, notes, services } = await running.findings;
    assert.equal(state, 'partial', flood);
    assert.ok(notes.includes('output_cut'), flood);
    assert.ok(services.length <= 1);
    assert.match(running.fault()!, /8 MiB/);
  }
});

test('NET-8.3: 8 MiB of output are read, and one byte more is too much', async (t) => {
  for (const more of [0, 1]) {
    const { deps } = standIn(t, `head -c ${8 * 1024 * 1024 + more} /dev/zero >&2; exit 1`);
    const { notes } = await startScan(deps, task).findings;
    assert.equal(notes.includes('output_cut'), more === 1, String(more));
  }
});

test('NET-8.3: the program runs with nice 15 and idle I/O', async (t) => {
  const { deps, folder } = standIn(t, 'nice > "$folder/priority"; ionice >> "$folder/priority"; exit 1');
  await startScan(deps, task).findings;
  // Nicer by 15 than this process, which may be nice itself.
  const nice = Math.min(19, getPriority() + 15);
  const said = readFileSync(join(folder, 'priority'), 'utf8').split('\n');
  assert.deepEqual(said.slice(0, 2), [String(nice), 'idle']);
});

test('without nmap, and where the group takes no process, nothing is found and it says why', async (t) => {
  const { deps, folder } = standIn(t, ordinary);
  const missing = startScan({ ...deps, program: join(folder, 'absent') }, task);
  assert.equal((await missing.findings).state, 'partial');
  assert.match(missing.fault()!, /^nmap, setpriv, ionice or prlimit is missing/);
  const limits = { ...deps.limits, enclose: () => ({ procsFiles: [join(folder, 'no/procs')], remove() {} }) };
  const unlimited = startScan({ ...deps, limits }, task);
  assert.deepEqual((await unlimited.findings).services, []);
  assert.match(unlimited.fault()!, /limits of the scan could not be set/);
  assert.equal(existsSync(join(folder, 'calls')), false, 'the program never ran');
});

test('NET-2.7.5: one port that never answers does not hold the others up', async (t) => {
  const { deps, calls, called } = standIn(
    t,
    `
if [ $transport = udp ]; then begin 100; rest closed 100 port-unreach; finish; exit 0; fi
if [ $phase = discover ]; then begin 100; open 21; open 22; open 23; open 25; open 80; rest closed 95 reset; finish; exit 0; fi
case ",$ports," in *,23,*) [ "$ports" = 23 ] || exec sleep 600;; esac
begin $(echo "$ports" | tr ',' '\\n' | wc -l)
for port in $(echo $ports | tr ',' ' '); do open $port '<service name="x" product="Found" method="probed" conf="10"/>'; done
finish`,
  );
  const clock = createTestClock(Date.parse('2026-11-23T08:00:00Z'));
  const running = startScan({ ...deps, clock }, task);
  for (const group of [/identify 21,22,23,25,80$/, /identify 23,25$/]) {
    await called(group);
    await clock.advance(40_000);
  }
  const findings = await running.findings;
  assert.equal(findings.state, 'complete');
  assert.deepEqual(
    findings.services.map(({ port, product }) => [port, product]),
    [21, 22, 23, 25, 80].map((port) => [port, 'Found']),
  );
  assert.ok(calls().includes('tcp identify 21,22,23,25,80'));
  assert.ok(calls().includes('tcp identify 23'));
});

test('no process outlives a sensor that is killed', async (t) => {
  const { folder, procs, deps } = standIn(t, 'exec 9>"$folder/alive"; begin 100; open 22; exec sleep 600');
  const alive = join(folder, 'alive');
  execFileSync('mkfifo', [alive]);
  // It ends when no process has the other end any more.
  const scannerEnded = once(createReadStream(alive).resume(), 'end');
  const script = join(folder, 'sensor.ts');
  const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
  writeFileSync(
    script,
    `import { startScan } from '${here('./run-scan.ts')}';
import { systemClock } from '${here('../../common/clock/index.ts')}';
const open = async () => ({ watch() {}, forget() {}, pause() {}, resume() {}, close() {}, packets: () => 0, holds: () => 0 });
const limits = { version: 2, missing: [], enclose: () => ({ procsFiles: ['${procs}'], remove() {} }) };
const running = startScan({ clock: systemClock, limits, pacer: { open, close: async () => {} }, program: '${deps.program}' }, ${JSON.stringify(task)} as never);
setInterval(() => running.progress().open.length > 0 && process.stdout.write('found'), 10);
`,
  );
  const sensor = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(sensor.stdout, 'data');
  const scanner = Number(readFileSync(procs, 'utf8'));
  assert.equal(isAlive(scanner), true);
  sensor.kill('SIGKILL');
  await once(sensor, 'exit');
  await scannerEnded;
  // The kernel closes the files of a process a little before it has ended.
  while (isAlive(scanner)) await nextTurn();
});

function isAlive(processId: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${processId}/status`, 'utf8'));
  } catch {
    return false;
  }
}
