import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { findDevice } from './list-store.ts';
import { deleteName, upsertName } from './store.ts';

const nameLengthMax = 80;

/**
 * Names a device's MAC, on every segment that shows it; an empty name restores automatic identification (NET-2.1.3).
 * Throws `devices.invalid`; false when the site has no such device.
 */
export async function nameDevice(
  db: Queryable,
  actor: Actor,
  input: { siteId: number; deviceId: number; name: string },
): Promise<boolean> {
  requireOperator(actor);
  const device = await findDevice(db, input.siteId, input.deviceId);
  if (!device) return false;
  const name = oneLine(input.name);
  if (name.length > nameLengthMax) {
    throw new CodedError('devices.invalid', `A device's name has at most ${nameLengthMax} characters.`);
  }
  await inTransaction(db, async (trx) => {
    if (name === '') await deleteName(trx, device.mac);
    else await upsertName(trx, device.mac, name, actor.kind === 'person' ? actor.id : null);
    await record(trx, actor, {
      operation: 'device.name',
      subject: { kind: 'device', id: input.deviceId, name: device.mac },
      after: { name: name || null },
    });
  });
  return true;
}
