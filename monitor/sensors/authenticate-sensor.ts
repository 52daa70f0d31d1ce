import { parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type EnrolledSensor, findCredential } from './store.ts';

/** The sensor that this bearer token belongs to. Only reads; unknown ids take the time of known ones. */
export async function authenticateSensor(db: Queryable, token: string): Promise<EnrolledSensor | null> {
  const credential = parseCredential('svcsen', token);
  if (!credential) return null;
  const found = await findCredential(db, credential.id);
  const isRight = secretMatches(found?.digest ?? null, credential.secret);
  return found && isRight ? found.sensor : null;
}
