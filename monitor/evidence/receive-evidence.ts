/**
 * Stores a sensor's capture file: row, object, then the row says that the object is there.
 *
 * A process that dies in between leaves a row that is not shown; the sensor sends the file again, or retention removes
 * object and row. The first file of an incident stays.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdDecompress } from 'node:zlib';
import { CodedError, describeError } from '#common/errors/index.ts';
import { decodeEvidence, evidenceBytesMax } from '#contracts/sensor-api/evidence.ts';
import type { AuthenticatedSensor } from '#monitor/sensors/index.ts';
import { isUniqueViolation } from '#service-kit/postgres/index.ts';
import type { EvidenceDeps } from './index.ts';
import { beginFile, countFiles, isStored, markStored, type NewFile } from './store.ts';

/** Files of one sensor: a stolen credential must not fill the store. */
const filesMax = 1000;

const unpack = promisify(zstdDecompress);
/** The most memory that a zstd frame may ask for its window, as a power of two. */
const params = { [constants.ZSTD_d_windowLogMax]: 24 };

/** `duplicate`: a file of this incident is stored already. */
export type EvidenceReceipt = 'stored' | 'duplicate';

export async function receiveEvidence(
  deps: EvidenceDeps,
  sensor: Pick<AuthenticatedSensor, 'id'>,
  observationId: string,
  body: Uint8Array,
): Promise<EvidenceReceipt> {
  const { db, incidents, objects } = deps;
  const observed = await incidents.findObservation(sensor.id, observationId);
  if (observed === 'of_another')
    throw new CodedError('evidence.of_another', 'This incident was not observed by this sensor.');
  if (observed === 'unknown')
    throw new CodedError('evidence.incident_unknown', 'No incident of this sensor has this id yet.');
  if (await isStored(db(), sensor.id, observationId)) return 'duplicate';
  const file = await describeFile(body);
  if ((await countFiles(db(), sensor.id)) >= filesMax)
    throw new CodedError(
      'evidence.too_many',
      `This sensor has ${filesMax} capture files stored. The oldest are deleted after ${deps.days} days.`,
    );
  const { siteId, capture, endsAtMs: incidentEndsAtMs } = observed;
  const { id, objectKey } = await beginFile(db(), {
    ...{ ...file, siteId, sensorId: sensor.id, observationId, capture, incidentEndsAtMs },
  });
  await objects.put(objectKey, body);
  try {
    if (await markStored(db(), id)) return 'stored';
  } catch (error) {
    if (isUniqueViolation(error, 'evidence_files_stored')) return 'duplicate';
    throw error;
  }
  throw new CodedError('evidence.removed', 'The capture file expired while it was stored. Send it again.');
}

type Described = Pick<
  NewFile,
  'digest' | 'objectBytes' | 'fileBytes' | 'packets' | 'firstPacketAtMs' | 'lastPacketAtMs'
>;

async function describeFile(body: Uint8Array): Promise<Described> {
  const file = await decompress(body);
  const { packets } = decodeEvidence(file);
  const times = packets.map(({ seconds, nanoseconds }) => seconds * 1000 + Math.floor(nanoseconds / 1e6));
  return {
    digest: createHash('sha256').update(body).digest(),
    objectBytes: body.length,
    fileBytes: file.length,
    packets: packets.length,
    firstPacketAtMs: times.reduce((a, b) => Math.min(a, b)),
    lastPacketAtMs: times.reduce((a, b) => Math.max(a, b)),
  };
}

/** The pcap file in an object. Throws `evidence.malformed`, `evidence.too_large`. */
export async function decompress(body: Uint8Array): Promise<Uint8Array> {
  try {
    return await unpack(body, { maxOutputLength: evidenceBytesMax, params });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new CodedError(
        'evidence.too_large',
        `A capture file must not hold more than ${evidenceBytesMax} bytes.`,
      );
    throw new CodedError(
      'evidence.malformed',
      `The capture file is not compressed with Zstandard: ${describeError(error)}.`,
    );
  }
}
