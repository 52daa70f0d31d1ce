/** Starting and stopping drills. A drill reaches the sensors that protect its address with their next plan. */
import { randomUUID } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { drillsMax } from '#contracts/sensor-api/detection.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import { type DrillInput, drillDelaySeconds, parseDrill } from './drill.ts';
import { explainAddress } from './explain-address.ts';
import type { ProtectionDeps } from './index.ts';
import * as store from './store.ts';

/** Returns the id of the drill. Throws `protection.invalid`. */
export async function startDrill(
  deps: ProtectionDeps,
  actor: Actor,
  siteId: number,
  typedAddress: string,
  input: DrillInput,
): Promise<string> {
  requireOperator(actor);
  const order = parseDrill(input);
  const { address, protectedBy } = await explainAddress(deps, siteId, typedAddress);
  if (protectedBy.kind === 'nothing')
    throw refused(
      `${address} is not protected, so no sensor would find the drill. Add it to the additional prefixes first.`,
    );
  return inTransaction(deps.db(), async (trx) => {
    // The lock keeps concurrent calls within the limit.
    if (!(await lockSite(trx, siteId))) throw refused('This site does not exist.');
    const open = await store.listOpenDrills(trx, siteId);
    if (open.length >= drillsMax)
      throw refused(
        `At most ${drillsMax} drills of a site run at once. Stop one, or wait until one has ended.`,
      );
    if (open.some((one) => one.address === address && one.direction === order.direction))
      throw refused(`A drill of ${address} in this direction is waiting or running. Stop it first.`);
    const id = randomUUID();
    const drill = { ...order, id, address, delaySeconds: drillDelaySeconds };
    await store.insertDrill(trx, siteId, drill, actor.name ?? actor.kind);
    const after = { siteId, address, ...order };
    await record(trx, actor, {
      operation: 'drill.start',
      subject: { kind: 'drill', id, name: address },
      after,
    });
    return id;
  });
}

/** Sensors stop it with their next plan. False: it has ended, or the site has no such drill. */
export async function stopDrill(
  { db }: Pick<ProtectionDeps, 'db'>,
  actor: Actor,
  siteId: number,
  id: string,
): Promise<boolean> {
  requireOperator(actor);
  return inTransaction(db(), async (trx) => {
    const stopped = await store.stopDrill(trx, siteId, id, actor.name ?? actor.kind);
    if (!stopped) return false;
    const subject = { kind: 'drill', id, name: stopped.address };
    await record(trx, actor, { operation: 'drill.stop', subject, after: { siteId } });
    return true;
  });
}

function refused(message: string): CodedError {
  return new CodedError('protection.invalid', message);
}
