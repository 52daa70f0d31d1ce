/** What the page of an address shows, read from the features. */
import type { AddressConflict, AddressOwner, AddressPlace } from '#monitor/devices/index.ts';
import type { AddressUse, PeerList } from '#monitor/facts/index.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import type { PeerNetwork } from '#monitor/peers/index.ts';
import type { ChartData, Range } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { readAround } from '../parts/chart-around.ts';
import type { OriginLine } from '../parts/origin.ts';
import { type AddressPoint, pointsOf } from './address-points.ts';

/** Seconds since 1970, the end excluded. */
export interface Step {
  from: number;
  to: number;
}

export interface AddressData {
  points: readonly AddressPoint[];
  around: Pick<ChartData, 'reasons' | 'flags'>;
  used: readonly AddressUse[];
  networks: PeerList<PeerNetwork>;
  owners: readonly AddressOwner[];
  conflicts: readonly AddressConflict[];
  /** Attacks on and by it, open ones first. */
  incidents: readonly Incident[];
  /** Sources of the chosen step; null without one. */
  origin: readonly OriginLine[] | null;
}

const ownersMax = 100;
const incidentsMax = 20;
const networksShown = 10;

/** `step` is the chosen one, whose sources are read too. */
export async function readAddress(
  deps: ConsoleDeps,
  siteId: number,
  place: AddressPlace,
  range: Range,
  step: Step | null,
  nowMs: number,
): Promise<AddressData> {
  const [points, around, used, networks, owners, conflicts, origin, incidents] = await Promise.all([
    readPoints(deps, siteId, place, range, nowMs),
    readAround(deps, { siteId, addresses: [place.address] }, range, nowMs),
    readUse(deps, siteId, place, range),
    deps.peers.listNetworks(siteId, place, range, networksShown),
    deps.devices.listOwners(siteId, place, ownersMax),
    deps.devices.listAddressConflicts(siteId, place, ownersMax),
    step === null ? null : readOrigin(deps, siteId, place, step.from, step.to),
    deps.incidents.list({ siteId, address: place.address }, incidentsMax),
  ]);
  return { points, around, used, networks, owners, conflicts, origin, incidents };
}

/** A blank segment means that the address is globally unique or has no known owner. */
const segmentArgument = ({ segment }: AddressPlace) => segment || undefined;

export async function readPoints(
  deps: ConsoleDeps,
  siteId: number,
  place: AddressPlace,
  range: Range,
  nowMs: number,
) {
  // The present minute has not been uploaded yet, and neither have future ones.
  const until = Math.min(range.toMs / 1000, Math.floor(nowMs / 60_000) * 60);
  const from = range.fromMs / 1000;
  const segment = segmentArgument(place);
  const minutes =
    from < until ? await deps.traffic.readAddressMinutes(siteId, place.address, from, until, segment) : [];
  return pointsOf(minutes, range, nowMs);
}

async function readUse(
  deps: ConsoleDeps,
  siteId: number,
  place: AddressPlace,
  range: Range,
): Promise<AddressUse[]> {
  const to = range.toMs / 1000;
  return deps.applications.sumAddressApplications(
    siteId,
    place.address,
    Math.max(range.fromMs / 1000, to - 86_400),
    to,
    segmentArgument(place),
  );
}

/** The captures that counted the step, and the uploads that contained those minutes. */
async function readOrigin(deps: ConsoleDeps, siteId: number, place: AddressPlace, from: number, to: number) {
  const { address } = place;
  const rows = await deps.traffic.explainAddress(siteId, address, from, to, segmentArgument(place));
  const sensorIds = [...new Set(rows.map((row) => row.sensorId))];
  const uploads = sensorIds.length === 0 ? [] : await deps.inbox.listKept(sensorIds, from, to);
  return rows.map(
    (row): OriginLine => ({
      ...row,
      uploads: uploads.filter(
        ({ sensorId, firstMinute, lastMinute }) =>
          sensorId === row.sensorId && firstMinute <= row.minute && lastMinute >= row.minute,
      ),
    }),
  );
}
