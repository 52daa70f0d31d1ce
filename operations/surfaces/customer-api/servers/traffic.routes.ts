import { canonicalAddress } from '#common/ip/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { lossOf } from '#contracts/minute-reasons.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import { bytesOf, type ProtectTraffic, type StepRow } from '#operations/protect/index.ts';
import type { Handlers } from '../call.ts';
import { idOf, queryReader, readMoment } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { findServer } from './servers.routes.ts';

const readQuery = queryReader(schemas.TrafficQuery);
/** Steps of a call that names no range. */
const stepsDefault = 60;

type StepRange = ReturnType<typeof rangeOf>;

/**
 * Observed traffic, with the numbers of the portal's Traffic page: both read the same steps. Every step of the range is a
 * point; one that was not observed is unknown. While the protection views of the server are off, plain traffic stays and
 * what a view would say of attacks is null.
 */
export function trafficHandlers(deps: Features) {
  const { servers, protectTraffic, protectSettings, clock } = deps;
  return {
    async readServerTraffic(call, request) {
      const id = idOf(request);
      // A missing server is a 404 before the query is validated.
      const server = await findServer(servers, call, id);
      const query = readQuery(request);
      const range = rangeOf(query, clock.nowMs());
      const subject = { serverId: id, tenantId: server.tenantId };
      const [observed, { viewsOn }] = await Promise.all([
        protectTraffic.readAddresses(call.actor, subject),
        protectSettings.find(call.actor, subject),
      ]);
      const addresses = [...new Set([...server.addresses.map((one) => one.address), ...observed])];
      const address = query.address === undefined ? null : addressOf(query.address, addresses);
      const [steps, applications] = await Promise.all([
        protectTraffic.readSteps(call.actor, { ...subject, address }, range),
        query.applications === 'yes' && viewsOn
          ? readApplications(protectTraffic, call.actor, { serverId: id, address }, range)
          : null,
      ]);
      return {
        server_id: id,
        from: new Date(range.fromMs).toISOString(),
        to: new Date(range.toMs).toISOString(),
        step: stepOf(query),
        step_seconds: range.stepSeconds,
        address,
        addresses,
        last_observed_at: lastObservedOf(steps),
        points: showPoints(viewsOn ? steps : steps.map(withoutProtection), range),
        applications: applications?.rows ?? null,
        applications_from: applications?.from ?? null,
      } satisfies schemas.ServerTraffic;
    },
  } satisfies Handlers;
}

function stepOf({ step, range }: schemas.TrafficQuery): schemas.TrafficStep {
  return step ?? (range === undefined ? 'minute' : schemas.trafficRanges[range].step);
}

/** Applications of the part of the range that lies in the last 24 hours (NET-2.4.4). */
async function readApplications(
  traffic: Pick<ProtectTraffic, 'readApplicationUse'>,
  actor: Actor,
  { serverId, address }: { serverId: number; address: string | null },
  range: StepRange,
) {
  const subject = { serverIds: [serverId], addresses: address === null ? null : [address] };
  const { identities, fromMs } = await traffic.readApplicationUse(actor, subject, range);
  const rows = identities
    .filter((each) => bytesOf(each) > 0)
    .sort((a, b) => bytesOf(b) - bytesOf(a) || a.name.localeCompare(b.name))
    .map((each) => ({
      name: each.name,
      transport: each.transport,
      server_port: each.serverPort,
      inbound_bytes: each.inboundBytes,
      outbound_bytes: each.outboundBytes,
      last_sent_at: new Date(each.lastSentAt.getTime() + 60_000).toISOString(),
    }));
  return { rows, from: new Date(fromMs).toISOString() };
}

/** The whole steps that hold the range. Ends with the step of now at the latest. */
function rangeOf(query: schemas.TrafficQuery, nowMs: number) {
  const stepSeconds = schemas.trafficSteps[stepOf(query)];
  const stepMs = stepSeconds * 1_000;
  if (query.range !== undefined && (query.from ?? query.to) !== undefined) {
    const message = 'must not be given together with `from` or `to`';
    throw invalidFields([{ path: 'range', code: 'invalid', message }]);
  }
  const seconds = query.range === undefined ? null : schemas.trafficRanges[query.range].seconds;
  const from =
    seconds !== null
      ? nowMs - seconds * 1_000
      : query.from === undefined
        ? null
        : readMoment('from', query.from);
  const to = Math.min(query.to === undefined ? nowMs : readMoment('to', query.to), nowMs);
  if (from !== null && from >= to) {
    const message = from >= nowMs ? 'must be in the past' : 'must be before `to`';
    throw invalidFields([{ path: 'from', code: 'range', message }]);
  }
  const toMs = Math.ceil(to / stepMs) * stepMs;
  const fromMs = from === null ? toMs - stepsDefault * stepMs : Math.floor(from / stepMs) * stepMs;
  const points = (toMs - fromMs) / stepMs;
  if (points > schemas.trafficPointsMax) {
    const message = `is ${points} steps before the end of the range, at most ${schemas.trafficPointsMax} are possible; choose a later \`from\` or a longer \`step\``;
    throw invalidFields([{ path: 'from', code: 'range', message }]);
  }
  return { fromMs, toMs, stepSeconds };
}

function addressOf(text: string, addresses: readonly string[]): string {
  const found = addresses.find((one) => one === (canonicalAddress(text) ?? text));
  if (found !== undefined) return found;
  const message = 'The server has no such public address, and no traffic of it was observed.';
  throw invalidFields([{ path: 'address', code: 'unknown_value', message, allowed: [...addresses] }]);
}

function withoutProtection(step: StepRow): StepRow {
  const reason = lossOf(step.reason) ? step.reason : null;
  return {
    ...{ ...step, reason, expectedBps: null, expectedPps: null, ddosBps: null, ddosPps: null },
    ...{ droppedInboundBytes: null, droppedOutboundBytes: null },
    ...{ droppedInboundPackets: null, droppedOutboundPackets: null },
  };
}

function lastObservedOf(steps: readonly StepRow[]): string | null {
  const last = steps.findLast((step) => step.lastMinute !== null)?.lastMinute ?? null;
  return last === null ? null : new Date(last.getTime() + 60_000).toISOString();
}

function showPoints(steps: readonly StepRow[], { fromMs, toMs, stepSeconds }: StepRange) {
  const byTime = new Map(steps.map((step) => [step.at.getTime(), step]));
  const stepMs = stepSeconds * 1_000;
  return Array.from({ length: (toMs - fromMs) / stepMs }, (_, index) => {
    const atMs = fromMs + index * stepMs;
    return showPoint(atMs, byTime.get(atMs));
  });
}

function showPoint(atMs: number, step: StepRow | undefined): schemas.TrafficPoint {
  return {
    timestamp: new Date(atMs).toISOString(),
    inbound_bps: step?.inboundBps ?? null,
    outbound_bps: step?.outboundBps ?? null,
    pps: step?.pps ?? null,
    inbound_bytes: step?.inboundBytes ?? null,
    outbound_bytes: step?.outboundBytes ?? null,
    provider_scan_inbound_bytes: step?.ownScanInboundBytes ?? null,
    provider_scan_outbound_bytes: step?.ownScanOutboundBytes ?? null,
    dropped_inbound_bytes: step?.droppedInboundBytes ?? null,
    dropped_outbound_bytes: step?.droppedOutboundBytes ?? null,
    dropped_inbound_packets: step?.droppedInboundPackets ?? null,
    dropped_outbound_packets: step?.droppedOutboundPackets ?? null,
    expected_bps: step?.expectedBps ?? null,
    expected_pps: step?.expectedPps ?? null,
    attack_bps: step?.ddosBps ?? null,
    attack_pps: step?.ddosPps ?? null,
    coverage: step?.coverage ?? null,
    reason: step?.reason ?? null,
    observed_minutes: step?.minutes ?? 0,
    observed_addresses: step?.addresses ?? 0,
  };
}
