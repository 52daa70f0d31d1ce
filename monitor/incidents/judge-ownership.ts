/**
 * For whom a sensor speaks: only for servers of its own node. What it says of another node's server is foreign and makes no
 * incident. An outbound attack is blamed on a server only where the MAC that sent it and the node agree with the inventory;
 * else the sender's address may be made up, and the incident is the capture's.
 */
import { isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import { parseDeviceKey } from '#monitor/devices/index.ts';
import { checkAddresses, checkInterfaces, type ForeignCheck } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { IncidentKey, ReportedIncident } from './incident.ts';

/** What one sensor said in one revision. */
export interface Statement {
  siteId: number;
  sensorId: number;
  said: ReportedIncident;
}

export interface Ownership {
  isForeign: boolean;
  key: IncidentKey;
}

const minuteOf = (ms: number) => Math.floor(ms / 60_000) * 60;
const segmentsOf = ({ deviceKey }: ReportedIncident) => [parseDeviceKey(deviceKey)?.segment ?? ''];

/** Verdicts in the order of the statements. Call it under `share` of placements, because they are stored. */
export async function judgeOwnership(db: Queryable, statements: readonly Statement[]): Promise<Ownership[]> {
  const isForeign = await checkHosts(db, statements);
  const isSender = await checkSenders(db, statements);
  return statements.map((one) => {
    const { siteId, sensorId, said } = one;
    const { direction, severity, drill: isDrill } = said;
    const target = isSender(one) ? said.target : { kind: 'capture' as const, value: said.capture };
    const targetKey = keyOf(target, sensorId, said);
    const key = { siteId, target, targetKey, direction, severity, isDrill };
    return { isForeign: isForeign(one), key };
  });
}

/** True where the address was of another node's server when the attack began or when it was last observed. */
async function checkHosts(
  db: Queryable,
  statements: readonly Statement[],
): Promise<(statement: Statement) => boolean> {
  const hosts = statements.filter(({ said }) => said.target.kind === 'host');
  const spoken = new Map(
    hosts.map(({ sensorId, said }) => [
      `${sensorId} ${said.target.value}`,
      { sensorId, subject: said.target.value },
    ]),
  );
  const check = await checkAddresses(db, [...spoken.values()]);
  return ({ sensorId, said }) =>
    said.target.kind === 'host' &&
    [said.startedAtMs, said.lastObservedAtMs].some((ms) =>
      check(sensorId, said.target.value, minuteOf(ms), segmentsOf(said)),
    );
}

/** False where it is not certain that the server with the target's address sent the packets. */
async function checkSenders(
  db: Queryable,
  statements: readonly Statement[],
): Promise<(statement: Statement) => boolean> {
  // A drill has no packets, so there is no sender to doubt.
  const doubted = statements.filter(
    ({ said }) => said.direction === 'outbound' && said.target.kind === 'host' && !said.drill,
  );
  const known = doubted.flatMap((statement) => {
    const mac = parseDeviceKey(statement.said.deviceKey)?.mac;
    return mac === undefined ? [] : [{ statement, mac }];
  });
  const own = await checkInterfaces(
    db,
    known.map(({ statement: { sensorId, said }, mac }) => ({
      ...{ sensorId, mac, address: said.target.value },
      minute: minuteOf(said.lastObservedAtMs),
    })),
  );
  const certain = new Set(known.flatMap(({ statement }, i) => (own.has(i) ? [statement] : [])));
  const all = new Set(doubted);
  return (statement) => !all.has(statement) || certain.has(statement);
}

function keyOf(target: IncidentKey['target'], sensorId: number, said: ReportedIncident): string {
  if (target.kind === 'capture') return `capture ${sensorId} ${target.value}`;
  if (target.kind === 'prefix') return `prefix ${target.value}`;
  const bytes = parseAddress(target.value);
  // The same private address is another server on another segment.
  const segment = bytes && !isGloballyUnique(bytes) ? segmentsOf(said)[0] : '';
  return segment ? `host ${target.value} ${segment}` : `host ${target.value}`;
}

/** Tells of which observations the target has left the sensor's node since, so that it can't be recovered any more. */
export async function checkReleased(
  db: Queryable,
  observations: readonly { sensorId: number; said: ReportedIncident }[],
  nowMs: number,
): Promise<(one: { sensorId: number; said: ReportedIncident }) => boolean> {
  const hosts = observations.filter(({ said }) => said.target.kind === 'host' && said.recoveredAtMs === null);
  const spoken = new Map(
    hosts.map(({ sensorId, said }) => [
      `${sensorId} ${said.target.value}`,
      { sensorId, subject: said.target.value },
    ]),
  );
  const check: ForeignCheck = await checkAddresses(db, [...spoken.values()]);
  return ({ sensorId, said }) =>
    said.target.kind === 'host' && check(sensorId, said.target.value, minuteOf(nowMs), segmentsOf(said));
}
