/**
 * What the monitor wants this sensor to do, fetched every 30 seconds.
 *
 * A plan has sections, each with a reader of its own in `sections.ts`.
 *
 * Promises: the last good plan is kept on disk, so a sensor that starts without its monitor still knows what is
 * local. A plan that can't be fetched or read changes nothing. Versions missing from a plan are an older monitor's,
 * and what it would not understand is left out (NET-9.4).
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';
import {
  type CaptureSection,
  type DetectionSection,
  type FilterSection,
  type LiveSection,
  type OwnersSection,
  type PlanFields,
  type ProbesSection,
  type ProtectionSection,
  readCapture,
  readDetection,
  readFilter,
  readLive,
  readOwners,
  readProbes,
  readProtection,
  readSite,
  type SiteSettings,
} from './sections.ts';

export { downgradeForMonitor } from './sections.ts';

const fetchEveryMs = 30_000;
const retryFirstMs = 5_000;
/** NET-8: one fetch at a time, 15 seconds each. */
const fetchTimeoutMs = 15_000;

export interface PlanFollowerOptions {
  /** Carries the sensor's credential. */
  client: MonitorClient;
  stateDirectory: string;
  clock: Clock;
  reporter: Reporter;
  /** Called with the stored plan at the start, if there is one, and with each plan that differs from the last. */
  onPlan(plan: SensorPlan): void;
  /** Called with each plan that was fetched: whether the monitor asks for another credential. Never with a stored one. */
  onCredential?(isRotationDue: boolean): void;
  /** While the next plan is wanted sooner: after how long; else null. */
  urgentEveryMs?(): number | null;
}

/** Makes the part that keeps the plan fresh; `hasten` fetches it at once. */
export function createPlanFollower(options: PlanFollowerOptions): Part & { hasten(): void } {
  const { client, clock, reporter } = options;
  const path = join(options.stateDirectory, 'plan.json');
  const stopping = new AbortController();
  let sleeping = new AbortController();
  let etag: string | null = null;
  let lastText: string | null = null;
  let isFailing = false;
  let running: Promise<void> = Promise.resolve();

  function take(body: unknown, isStored: boolean): boolean {
    const plan = parsePlan(body);
    if (!plan) return false;
    const text = JSON.stringify(body);
    if (text !== lastText) {
      lastText = text;
      if (!isStored) store(text);
      logPlan(reporter, plan, isStored);
      options.onPlan(plan);
    }
    return true;
  }

  function store(text: string): void {
    try {
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch (error) {
      reporter.warn('the plan could not be stored', { why: describeError(error) });
    }
  }

  function takeStored(): void {
    try {
      take(JSON.parse(readFileSync(path, 'utf8')), true);
    } catch {
      // None yet, or damaged: the monitor's word replaces it.
    }
  }

  /** Returns null when all is well, else what is wrong. */
  async function fetchOnce(): Promise<string | null> {
    const answer = await client.request({
      method: 'GET',
      path: '/plan',
      timeoutMs: fetchTimeoutMs,
      signal: stopping.signal,
      ...(etag ? { headers: { 'if-none-match': etag } } : {}),
    });
    if (answer.status === 304) return null;
    if (answer.status !== 200) return refusalMessage(answer);
    const { work, isRotationDue } = splitPlan(answer.json);
    if (!take(work, false)) return 'the answer is no plan';
    options.onCredential?.(isRotationDue);
    etag = answer.headers.get('etag');
    return null;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const wrong = await fetchOnce().catch(describeError);
      if (stopping.signal.aborted) return;
      if (wrong && !isFailing) reporter.warn('no fresh plan, keeping the last one', { why: wrong });
      if (!wrong && isFailing) reporter.info('the plan is fresh again');
      isFailing = wrong !== null;
      sleeping = new AbortController();
      const urgentMs = wrong ? null : (options.urgentEveryMs?.() ?? null);
      const normalMs = wrong && lastText === null ? retryFirstMs : fetchEveryMs;
      const signal = AbortSignal.any([stopping.signal, sleeping.signal]);
      await clock.wait(urgentMs ?? normalMs, signal);
    }
  }

  return {
    name: 'plan',
    hasten: () => sleeping.abort(),
    async start() {
      takeStored();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function logPlan(reporter: Reporter, plan: SensorPlan, isStored: boolean): void {
  const { localPrefixes, protectedAddresses, omissions } = plan;
  const counts = { local_cidrs: localPrefixes.length, protected: protectedAddresses.length };
  reporter.info(isStored ? 'using the stored plan' : 'plan taken', counts);
  for (const { section, ignored, leftOut } of omissions)
    reporter.warn('entries of the plan are not used', {
      section,
      not_understood: ignored,
      above_bound: leftOut,
    });
}

/** Entries of a section that the sensor does not use. */
export interface Omission {
  section: string;
  /** Not understood: no address, or a probe of a kind that this sensor does not know. */
  ignored: number;
  /** Above this sensor's bound. */
  leftOut: number;
}

/** A plan as this sensor understands it: what a newer monitor adds is ignored. */
export interface SensorPlan
  extends SiteSettings,
    CaptureSection,
    LiveSection,
    ProtectionSection,
    OwnersSection,
    ProbesSection,
    DetectionSection,
    FilterSection {
  /** Of the sections that have any. */
  omissions: Omission[];
}

/** What a plan says of the credential it was fetched with, apart from what the sensor is to do: that is stored, this not. */
function splitPlan(body: unknown): { work: unknown; isRotationDue: boolean } {
  if (typeof body !== 'object' || body === null) return { work: body, isRotationDue: false };
  const { credential_version, credential, ...work } = body as Record<string, unknown>;
  const { rotate } = (credential ?? {}) as { rotate?: unknown };
  return { work, isRotationDue: credential_version === 1 && rotate === true };
}

/** The plan in this body, or null when it is none. Unknown fields are ignored. */
export function parsePlan(body: unknown): SensorPlan | null {
  if (typeof body !== 'object' || body === null) return null;
  const fields = body as PlanFields;
  if (fields.plan_version !== 1) return null;
  const site = readSite(fields);
  const capture = readCapture(fields);
  const live = readLive(fields);
  const protection = readProtection(fields);
  const owners = readOwners(fields);
  const probes = readProbes(fields);
  const detection = readDetection(fields);
  const filter = readFilter(fields);
  const omissions = Object.entries({
    ...{ site, capture, live, protection, owners, probes, detection, filter },
  }).flatMap(([section, { ignored, leftOut }]) =>
    ignored + leftOut > 0 ? [{ section, ignored, leftOut }] : [],
  );
  return {
    ...site.values,
    ...capture.values,
    ...live.values,
    ...protection.values,
    ...owners.values,
    ...probes.values,
    ...detection.values,
    ...filter.values,
    omissions,
  };
}
