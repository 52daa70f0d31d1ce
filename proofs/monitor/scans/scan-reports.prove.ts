/**
 * Proof of what sensors report of scans: hostile sensors send unreadable bodies, reports outside the contract, reports of
 * servers that are not theirs, and readable ones that contradict one another, beside an honest sensor.
 *
 * Every unreadable one is refused with an error that names why, every other is answered as a plain model of the reports in
 * their order says, and at the end the tables hold what the models hold: of each sensor its own, and nothing else. Pages can
 * read all of it, and the monitor's memory does not grow.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { seededRandom } from '#common/random/index.ts';
import type { ScanReport } from '#contracts/sensor-api/port-scans.ts';
import {
  askScans,
  listServers,
  result,
  type ScanStage,
  scanId,
  startScanStage,
} from '#monitor/scans/testing/scan-world.ts';
import { makeReport, makeUnreadable, pick, type SentBody } from './hostile-reports.ts';
import { changeStored, isOfTables, type Plant, plants, tamper } from './planted-reports.ts';
import type { Random } from './random-inventory.ts';
import { ReportModel } from './report-model.ts';
import { findStoredFaults } from './stored-reports.ts';

export const name = 'scan-reports';
export const plantedFaults = plants;

const hostileSensors = 5;
const idsAtOnce = 6;
/** Reports of a run with a planted fault, which ends at the first offence; unreadable bodies are left out of it. */
const plantedReports = 400;
const reportsOfTables = 40;
const growthBytesMax = 32 * 1024 * 1024;
const refusals: ReadonlySet<string> = new Set([
  ...['400 bad_request', '413 payload_too_large', '415 unsupported_media_type'],
  ...['422 validation_failed', '422 scan_report_malformed'],
]);

export interface ScanReportsOptions {
  /** Number of hostile bodies; half of them are readable. */
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: ScanReportsOptions) {
  await using stage = await startScanStage();
  const { offences, stored, grownBytes, answers } = await send(stage, { n, seed, plant: null, report });
  for (const offence of offences.slice(0, 20)) report(offence);
  report([...answers].map(([answer, times]) => `${times} × ${answer}`).join(', '));
  let caught = 0;
  for (const plant of plants) {
    const reports = isOfTables(plant) ? reportsOfTables : plantedReports;
    const planted = await send(stage, { n: reports, seed: seed + 1, plant, report: () => {} });
    report(`planted ${plant}: ${planted.offences[0] ?? 'NOT NOTICED'}`);
    if (planted.offences.length > 0) caught += 1;
  }
  return {
    claim: `hostile reports of scans by ${hostileSensors} sensors beside an honest one: refused by name or taken as a model says; the ${stored} scans and ports that are stored are the model's; memory grew by ${(grownBytes / 2 ** 20).toFixed(1)} MiB over the second half`,
    tried: n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

/** A sensor and what it may report on. */
interface Sender {
  id: number;
  credential: string;
  targets: string[];
  ids: string[];
  random: Random;
  model: ReportModel;
}

interface Run {
  stage: ScanStage;
  senders: Sender[];
  honest: Sender;
  plant: Plant | null;
  offences: string[];
  answers: Map<string, number>;
}

async function send(
  stage: ScanStage,
  { n, seed, plant, report }: ScanReportsOptions & { plant: Plant | null },
) {
  const [honest, ...senders] = await enrolAll(stage, seed);
  const run: Run = {
    ...{
      stage,
      senders,
      honest: honest!,
      plant,
      offences: [],
      answers: new Map(),
    },
  };
  const startedMs = Date.now();
  let halfBytes = 0;
  for (let sent = 0; sent < n && (plant === null || run.offences.length === 0); ) {
    await Promise.all([sendHonest(run), ...senders.map((sender) => sendHostile(run, sender))]);
    sent += 2 * senders.length;
    if (plant === null && halfBytes === 0 && sent >= n / 2) halfBytes = usedBytes();
    if (sent % 2_000 === 0) report(`${sent} bodies, ${run.offences.length} offences`);
  }
  const grownBytes = plant === null ? usedBytes() - halfBytes : 0;
  if (grownBytes > growthBytesMax)
    run.offences.push(`memory grew by ${grownBytes} bytes over the second half`);
  if (plant !== null)
    await changeStored(stage.pool, plant, { honest: run.honest.id, hostile: senders[0]!.id });
  const { faults, stored } = await findStoredFaults(stage, [run.honest, ...senders], startedMs);
  run.offences.push(...faults);
  return { offences: run.offences, stored, grownBytes, answers: run.answers };
}

let enrolled = 0;

/** Each has two servers of its own, each with an address; those of different runs share none. */
async function enrolAll(stage: ScanStage, seed: number): Promise<Sender[]> {
  const senders: Sender[] = [];
  for (let k = 0; k <= hostileSensors; k += 1) {
    const n = enrolled;
    enrolled += 1;
    const node = `hv-${n + 10}`;
    const { id, credential } = await stage.enrol(node);
    const servers = [1, 2].map((place) => {
      const vmId = n * 2 + place;
      return { vmId, node, addresses: [`203.0.113.${20 + vmId}`] };
    });
    await listServers(stage.pool, servers);
    const { json } = await askScans(stage.url, credential);
    const targets = json.targets.map((one) => one.target_id);
    const ids = Array.from({ length: idsAtOnce }, scanId);
    const random = seededRandom(seed * 1_000 + k);
    senders.push({ id, credential, targets, ids, random, model: new ReportModel(targets) });
  }
  return senders;
}

/** One unreadable body and one report at the same time; an answer to a report comes before the next report. */
async function sendHostile(run: Run, sender: Sender): Promise<void> {
  const isReadableOnly = run.plant !== null && run.plant !== 'unreadable_taken';
  await Promise.all([
    isReadableOnly ? null : sendUnreadable(run, sender),
    sendReport(run, sender, makeHostile(run, sender)),
  ]);
}

function makeHostile({ honest, plant }: Run, sender: Sender): { meant: ScanReport; sent: ScanReport } {
  const { targets, ids, model, random } = sender;
  // Ids of the honest sensor's scans too, and now and then new ones.
  if (random() < 0.3)
    ids[Math.floor(random() * ids.length)] = random() < 0.2 ? pick(random, honest.ids) : scanId();
  const isForeign = random() < 0.05;
  const report = makeReport({
    random,
    ids,
    targets: isForeign ? honest.targets : targets,
    nowMs: Date.now(),
  });
  const meant = { ...report, scan_request_id: random() < 0.05 ? pick(random, ids) : null };
  return { meant, sent: plant === null ? meant : tamper(plant, meant, { targets, model }) };
}

async function sendReport(
  run: Run,
  sender: Sender,
  { meant, sent }: { meant: ScanReport; sent: ScanReport },
) {
  const answer = await ask(run, sender, JSON.stringify(sent), { 'content-type': 'application/json' });
  const right = sender.model.take(meant, Date.now());
  if (answer !== right)
    run.offences.push(`a ${meant.kind} of ${meant.target_id} was answered with ${answer}, not ${right}`);
}

async function sendUnreadable(run: Run, sender: Sender): Promise<void> {
  const target = pick(sender.random, sender.targets);
  const made: SentBody = makeUnreadable(sender.random, target, scanId());
  const body = run.plant === 'unreadable_taken' ? JSON.stringify(result(target, 'full', [])) : made.body;
  const answer = await ask(run, sender, body, made.headers);
  if (!refusals.has(answer)) run.offences.push(`${made.kind} was answered with ${answer}`);
}

/** A scan as a working sensor reports it; its last report comes twice. */
async function sendHonest(run: Run): Promise<void> {
  const { honest } = run;
  const { random } = honest;
  const id = scanId();
  honest.ids = [id, ...honest.ids].slice(0, idsAtOnce);
  const report = result(pick(random, honest.targets), 'common', [22, 80 + Math.floor(random() * 3)], {
    scan_id: id,
  });
  for (const right of ['accepted', 'duplicate']) {
    const answer = await ask(run, honest, JSON.stringify(report), { 'content-type': 'application/json' });
    if (honest.model.take(report, Date.now()) !== right || answer !== right)
      run.offences.push(`a result of the honest sensor was answered with ${answer}`);
  }
}

async function ask(
  run: Run,
  sender: Sender,
  body: SentBody['body'],
  headers: SentBody['headers'],
): Promise<string> {
  const answer = await fetch(`${run.stage.url}/agent/v1/port-scans`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sender.credential}`, ...headers },
    body,
  });
  const json = (await answer.json().catch(() => null)) as {
    receipt?: string;
    error?: { code: string };
  } | null;
  const said = answer.status === 200 ? `${json?.receipt}` : `${answer.status} ${json?.error?.code}`;
  run.answers.set(said, (run.answers.get(said) ?? 0) + 1);
  return said;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
