/**
 * One case of the scan ledger's proof: a sensor that lives several times on one ledger, the monitor's side of it, and what
 * its nmap was started for.
 */
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { type ScanPlan, ScanReport, type ScanResult } from '#contracts/sensor-api/port-scans.ts';

export const requestId = '0193a1f0-0000-7000-8000-00000000000a';
/** Plans come ten times a second of these sensors; a cycle takes about ten. */
const plansMax = 600;
const startMs = Date.parse('2026-11-23T08:00:00Z');

/** Writes what nmap 7.93 writes, for ports that follow from the scan's id, and notes what it is started for. */
const standIn = `#!/bin/sh
id=\${0##*/}
port=$((20000 + 0x\${id#????????-????-????-????-????????} % 10000))
case " $* " in *" -sU "*) transport=udp;; *) transport=tcp;; esac
case " $* " in *" -sV "*) phase=identify;; *) phase=discover;; esac
case " $* " in *" --top-ports "*) asked=100;; *) asked=65535;; esac
told="\${0%/*}/nmap.log"
echo "begin $id $PPID $transport $phase" >> "$told"
found() { echo "Discovered open port $1/$transport on 198.51.100.7"; }
shown() { echo "<port protocol=\\"$transport\\" portid=\\"$1\\"><state state=\\"open\\" reason=\\"syn-ack\\" reason_ttl=\\"64\\"/><service name=\\"ssh\\" $2/></port>" >&3; }
rest() { echo "<extraports state=\\"$1\\" count=\\"$2\\"><extrareasons reason=\\"$3\\" count=\\"$2\\" proto=\\"$transport\\"/></extraports>" >&3; }
begin() { echo "<?xml version=\\"1.0\\" encoding=\\"UTF-8\\"?><!DOCTYPE nmaprun><nmaprun scanner=\\"nmap\\" version=\\"7.93\\"><scaninfo type=\\"syn\\" protocol=\\"$transport\\" numservices=\\"$1\\"/><host starttime=\\"1\\" endtime=\\"5\\"><status state=\\"up\\"/><ports>" >&3; }
if [ $phase = identify ]; then
  ports=$(echo "$*" | sed -n 's/.* -p [TU]:\\([0-9,]*\\) .*/\\1/p' | tr ',' ' ')
  set -- $ports; begin $#
  for one in $ports; do shown $one 'product="OpenSSH" version="9.6p1" method="probed" conf="10"'; done
elif [ $transport = tcp ]; then
  found 22; sleep 0.12; found $port; sleep 0.12
  begin $asked; rest closed $((asked - 2)) reset; for one in 22 $port; do shown $one 'method="table" conf="3"'; done
else
  found 53; begin $asked; rest 'closed|filtered' $((asked - 1)) no-response; shown 53 'method="table" conf="3"'
fi
echo '</ports></host><runstats><finished time="5" exit="success"/></runstats></nmaprun>' >&3
echo "end $id $PPID $transport $phase" >> "$told"
`;

export interface Arrival {
  report: Exclude<ScanReport, { kind: 'heartbeat' }>;
  /** Lives in which it arrived, one entry for each time. */
  lives: number[];
}

/** What was observed of one case. */
export class ScanCase {
  readonly directory: string;
  /** Reports by scan, kind and time, as the monitor tells them apart. */
  readonly arrivals = new Map<string, Arrival>();
  /** The monitor's complaints. */
  readonly faults: string[] = [];
  life = 0;
  #plansInLife = 0;
  #emptyPlansInLife = 0;
  readonly #changes = new EventEmitter();

  constructor(directory: string) {
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'nmap'), standIn, { mode: 0o755 });
  }

  /** Begins a life, an hour's quarter after the one before. Returns its wall time. */
  beginLife(): number {
    this.life += 1;
    this.#plansInLife = 0;
    this.#emptyPlansInLife = 0;
    return startMs + this.life * 900_000;
  }

  /**
   * Resolves when everything that was started in any life has its result and nothing more is planned, or when this life
   * has fetched so many plans that nothing more will come.
   */
  async over(): Promise<void> {
    while (!this.#isOver()) await once(this.#changes, 'changed');
  }

  /** Each life begins with the request, also when it has run; when both results are there, nothing is planned any more. */
  plan(): ScanPlan {
    this.#plansInLife += 1;
    const full = this.results().filter(({ profile }) => profile === 'full');
    const isDone = new Set(full.map((one) => one.target_id)).size === 2;
    const isEmpty = isDone && this.#plansInLife > 1;
    if (isEmpty) this.#emptyPlansInLife += 1;
    this.#changes.emit('changed');
    return {
      ...{ plan_version: 1, revision: isEmpty ? 2 : 1, withdrawn: [] },
      scan_policy: { version: 1, daily_full_scan_at: new Date(startMs).toISOString() },
      targets: isEmpty ? [] : [targetOf(7), targetOf(8)],
      requests: [{ scan_request_id: requestId, target_id: targetOf(7).target_id }],
    };
  }

  take(report: ScanReport): 'accepted' | 'duplicate' {
    if (report.kind === 'heartbeat') return 'accepted';
    const key = `${report.scan_id} ${report.kind}@${report.at}`;
    const known = this.arrivals.get(key);
    if (known) known.lives.push(this.life);
    else this.arrivals.set(key, { report, lives: [this.life] });
    this.#changes.emit('changed');
    return known ? 'duplicate' : 'accepted';
  }

  results(): ScanResult[] {
    return [...this.arrivals.values()].flatMap(({ report }) => (report.kind === 'result' ? [report] : []));
  }

  /** Starts and ends of nmap. */
  runs(): { word: string; scanId: string; processId: string; transport: string; phase: string }[] {
    const path = join(this.directory, 'nmap.log');
    const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
    return lines.map((line) => {
      const [word, scanId, processId, transport, phase] = line.split(' ') as [
        string,
        string,
        string,
        string,
        string,
      ];
      return { word, scanId, processId, transport, phase };
    });
  }

  #isOver(): boolean {
    if (this.#plansInLife >= plansMax) return true;
    if (this.#emptyPlansInLife < 2) return false;
    const ended = new Set(this.results().map((one) => one.scan_id));
    const started = [...this.arrivals.values()].map(({ report }) => report.scan_id);
    return [...started, ...this.runs().map((run) => run.scanId)].every((scanId) => ended.has(scanId));
  }
}

function targetOf(host: number) {
  return {
    ...{ target_id: `nic-${host}`, address: `198.51.100.${host}`, interface: 'br0' },
    ...{ source_address: '198.51.100.1', vm_id: host, nic_id: host, inventory_at: '2026-11-23T08:00:00Z' },
  };
}

/** A monitor for many cases at once: the first part of a path names the case. */
export async function startScanMonitor(cases: ReadonlyMap<string, ScanCase>) {
  const server: Server = createServer(async (incoming, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const one = cases.get(incoming.url!.split('/')[1]!);
    if (!one) return answer(404, {});
    if (incoming.method === 'GET') return answer(200, one.plan());
    const pieces: Buffer[] = [];
    try {
      for await (const piece of incoming) pieces.push(piece as Buffer);
    } catch {
      // The sensor was killed during its request: there is nothing to take.
      return;
    }
    const report = JSON.parse(Buffer.concat(pieces).toString()) as ScanReport;
    if (!Value.Check(ScanReport, report)) one.faults.push(`a report that is none: ${JSON.stringify(report)}`);
    answer(200, { scan_id: report.scan_id, receipt: one.take(report) });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    urlOf: (name: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
