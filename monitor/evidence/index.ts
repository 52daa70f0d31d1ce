/**
 * Evidence: capture files of attacks, the first packets of each, from the sensors that saw them.
 *
 * Guarantees: a file is acknowledged when its object is durable and its row says so. A sensor may send files only of
 * incidents that it observed itself. A file is deleted after seven days (NET-8.R4), the object before its row; a store that
 * does not answer leaves both. Only operators read what is in a file, and each download is in the audit trail.
 */

import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { decodeEvidence } from '#contracts/sensor-api/evidence.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import type { AuthenticatedSensor } from '#monitor/sensors/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type DescribedPacket, describePacket } from './describe-packet.ts';
import type { ObjectStore } from './object-store.ts';
import { decompress, receiveEvidence } from './receive-evidence.ts';
import { deleteFile, type EvidenceFile, type Expiry, listFiles, lockExpired } from './store.ts';

export type { DescribedPacket } from './describe-packet.ts';
export type { ObjectStore } from './object-store.ts';
export { chooseStore } from './object-store.ts';
export { evidenceSettings } from './settings.ts';
export type { EvidenceFile } from './store.ts';

/** An incident of a sensor, as its views name it. */
export interface ObservedBy {
  sensorId: number;
  observationId: string;
}

export type Evidence = ReturnType<typeof createEvidence>;

/** A store is asked at most so often. */
const checkEveryMs = 30_000;

export function createEvidence(given: EvidenceDeps) {
  const deps = { ...given, objects: watchObjects(given.objects, given.reporter) };
  const { db, reader, clock, objects, days } = deps;
  let checked: { atMs: number; problem: Promise<string | null> } | null = null;

  async function read(actor: Actor, file: EvidenceFile): Promise<Uint8Array> {
    requireOperator(actor);
    const object = await objects.get(file.objectKey);
    if (object) return decompress(object);
    throw new CodedError('evidence.missing', `The file is not in the store (${objects.place}).`);
  }

  return {
    /**
     * Stores a file. Throws `evidence.incident_unknown`, `evidence.of_another`, `evidence.malformed`, `evidence.too_large`,
     * `evidence.too_many`, `evidence.store_full`, `evidence.store_unavailable`, `evidence.removed`.
     */
    receive: (sensor: Pick<AuthenticatedSensor, 'id'>, observationId: string, body: Uint8Array) =>
      receiveEvidence(deps, sensor, observationId, body),
    /** Files of these incidents of sensors that are not expired. */
    list: (siteId: number, observations: readonly ObservedBy[]) =>
      listFiles(reader(), siteId, observations, days),
    /** The packets of a file, decoded. Throws `evidence.missing` where the store has no such object. */
    async readPackets(actor: Actor, file: EvidenceFile): Promise<DescribedPacket[]> {
      const { linkType, packets } = decodeEvidence(await read(actor, file));
      return packets.map((packet) => describePacket(linkType, packet));
    },
    /** The pcap file; in the audit trail. */
    async download(actor: Actor, file: EvidenceFile, incidentId: string): Promise<Uint8Array> {
      const bytes = await read(actor, file);
      const { id, sensorId, capture, packets } = file;
      await inTransaction(db(), (trx) =>
        record(trx, actor, {
          operation: 'incident.download_evidence',
          subject: { kind: 'incident', id: incidentId },
          after: { file_id: id, sensor_id: sensorId, capture, packets },
        }),
      );
      return bytes;
    },
    /** Deletes what is kept long enough; returns how many files. */
    removeExpired: async () => (await removeExpired(deps, { days })).removed,
    /** Deletes what belongs to incidents that ended before; throws when some remain. */
    async removeOfIncidents(endedBeforeMs: number) {
      const { isAll } = await removeExpired(deps, { endedBeforeMs });
      if (!isAll) throw new Error('capture files of expired incidents are still being removed');
    },
    /** Why files can't be stored now; null: they can. */
    findProblem(): Promise<string | null> {
      const nowMs = clock.monotonicMs();
      if (!checked || nowMs - checked.atMs >= checkEveryMs)
        checked = { atMs: nowMs, problem: objects.check().then(() => null, describeError) };
      return checked.problem;
    },
  };
}

/** What capture files need from the rest of the program. */
export interface EvidenceDeps {
  db: () => Queryable;
  reader: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  objects: ObjectStore;
  /** How long files are kept. */
  days: number;
  incidents: Pick<Incidents, 'findObservation'>;
}

/** One run of retention does not wait longer for a slow store; the next one goes on. */
const patienceMs = 60_000;

/**
 * Removes expired files, of each the object before its row; returns how many. A store that does not answer ends it by an
 * error, and leaves both. The row is locked meanwhile, so that the same file can't be stored again in between.
 */
async function removeExpired(
  { db, objects, clock }: Pick<EvidenceDeps, 'db' | 'objects' | 'clock'>,
  expiry: Expiry,
): Promise<{ removed: number; isAll: boolean }> {
  const beganAtMs = clock.monotonicMs();
  for (let removed = 0; ; removed += 1) {
    if (clock.monotonicMs() - beganAtMs > patienceMs) return { removed, isAll: false };
    const isRemoved = await inTransaction(db(), async (trx) => {
      const place = await lockExpired(trx, expiry);
      if (!place) return false;
      await objects.remove(place.objectKey);
      await deleteFile(trx, place.id);
      return true;
    });
    if (!isRemoved) return { removed, isAll: true };
  }
}

/** The same store, which says in the log when it begins to fail and when it works again. */
function watchObjects(objects: ObjectStore, reporter: Reporter): ObjectStore {
  let isFailing = false;
  const watched =
    <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      try {
        const result = await call(...args);
        if (isFailing) reporter.info('the store of capture files works again', { store: objects.place });
        isFailing = false;
        return result;
      } catch (error) {
        if (!isFailing)
          reporter.error('the store of capture files fails; sensors keep their files and send them again', {
            why: describeError(error),
          });
        isFailing = true;
        throw error;
      }
    };
  return {
    place: objects.place,
    put: watched(objects.put),
    get: watched(objects.get),
    remove: watched(objects.remove),
    check: watched(objects.check),
  };
}
