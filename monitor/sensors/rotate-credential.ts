/**
 * A new credential for a sensor, and the end of its old one.
 *
 * The old credential is taken until the new one was used once, so a sensor that is killed at any step, or whose answer is
 * lost, has one that works. The first use is what a rotation waits for; it is written apart from authentication, which
 * only reads.
 */

import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { record, recorded } from '#service-kit/audit/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './credential-store.ts';

/** A lost answer is asked for again after this; a program that asks all the time fills no table. */
const throttleSeconds = 10;

export type RotationOutcome =
  | { outcome: 'issued'; credential: string; expiresAtMs: number }
  /** Nothing asks for another one. */
  | { outcome: 'not_due' }
  /** One was issued a moment ago. */
  | { outcome: 'throttled'; retryAfterSeconds: number }
  /** The credential was replaced, ended or revoked since it was checked. */
  | { outcome: 'refused' };

/** Issues the next credential of the sensor whose credential this is; of no other sensor. */
export function rotateCredential(
  db: Queryable,
  days: number,
  credentialId: string,
  origin?: RequestOrigin,
): Promise<RotationOutcome> {
  return db.transaction().execute(async (trx) => {
    const used = await store.lockCredential(trx, credentialId);
    if (!used) return { outcome: 'refused' };
    const { sensorId, hostName: name } = used;
    if (used.isNew) await finish(trx, used, origin);
    if (!used.isRotationDue) return { outcome: 'not_due' };
    if (await store.hasFreshCredential(trx, sensorId, throttleSeconds))
      return { outcome: 'throttled', retryAfterSeconds: throttleSeconds };
    const next = mintCredential('svcsen');
    const expiresAtMs = await store.insertNextCredential(trx, sensorId, next, days);
    const actor = { kind: 'sensor', id: sensorId, name, origin } as const;
    await record(trx, actor, {
      operation: 'sensor.rotate_credential',
      subject: { kind: 'sensor', id: sensorId, name },
      before: { id: used.id, expiresAt: timeText(used.expiresAtMs) },
      after: { id: next.id, expiresAt: timeText(expiresAtMs) },
    });
    return { outcome: 'issued', credential: next.token, expiresAtMs };
  });
}

/** Makes the new credential, which was used just now, the only one. */
export function finishRotation(db: Queryable, credentialId: string, origin?: RequestOrigin): Promise<void> {
  return db.transaction().execute(async (trx) => {
    const used = await store.lockCredential(trx, credentialId);
    if (used?.isNew) await finish(trx, used, origin);
  });
}

async function finish(
  trx: Queryable,
  used: { id: string; sensorId: number; hostName: string },
  origin: RequestOrigin | undefined,
): Promise<void> {
  const { id, sensorId, hostName: name } = used;
  if (!(await store.useCredential(trx, sensorId, id))) return;
  await record(trx, { kind: 'sensor', id: sensorId, name, origin } as const, {
    operation: 'sensor.replace_credential',
    subject: { kind: 'sensor', id: sensorId, name },
    after: { id },
  });
}

/** Asks a sensor to rotate at its next plan. False: the site has no such sensor. */
export function requestRotation(db: Queryable, actor: Actor, siteId: number, sensorId: number) {
  requireOperator(actor);
  const subject = { kind: 'sensor', id: sensorId };
  return recorded(db, actor, { operation: 'sensor.request_rotation', subject }, (trx) =>
    store.requestRotation(trx, siteId, sensorId),
  );
}

/** Runs writes that authentication found to be due, one for each credential at a time; a failed one is due again. */
export function createFollowUps(reporter: Reporter | undefined) {
  const running = new Map<string, Promise<void>>();
  return {
    run(credentialId: string, write: () => Promise<void>): void {
      if (running.has(credentialId)) return;
      const done = write()
        .catch((error: unknown) => {
          reporter?.warn("a sensor's credential could not be noted", { why: describeError(error) });
        })
        .finally(() => running.delete(credentialId));
      running.set(credentialId, done);
    },
    async settled(): Promise<void> {
      await Promise.all(running.values());
    },
  };
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
