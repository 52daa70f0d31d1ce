import { createBatching } from '#common/batching/index.ts';
import { CodedError } from '#common/errors/index.ts';
import {
  aheadSecondsMax,
  retentionRefusalMessage,
  type TelemetryReceipt,
} from '#contracts/sensor-api/http.ts';
import { countSetAside } from '#contracts/sensor-api/set-aside.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import type { Intake, ReadUpload, UploadConsumer } from '#monitor/intake/index.ts';
import type { Contact, EnrolledSensor } from '#monitor/sensors/index.ts';
import { isConnectionFailure } from '#service-kit/postgres/index.ts';
import type { InboxDeps, InboxParts } from './index.ts';
import { storeUploads, type UploadDecision, type UploadRow } from './store.ts';

/**
 * What speaks of a later time than this comes from a clock that is wrong. The sensor keeps it until its clock is right.
 * An older sensor can't stamp it again: its minutes wait up to an hour for their time, and later ones are refused.
 */
const ahead = { toleratedSeconds: aheadSecondsMax, waitSeconds: 3600 };
/** Uploads and bytes that one transaction stores. */
const storedMax = 100;
const bytesMax = 8 * 1024 * 1024;
/** Transactions under way: while one waits for the disk the next one is put together. */
const transactionsMax = 2;

const clockAheadMessage =
  'this upload speaks of a time more than 5 minutes ahead; set the clock of this host and send it again';

/** Throws `telemetry.malformed` for an upload that was sent to the wrong address. */
export type UploadCheck = (upload: TelemetryUpload) => void;

interface Received {
  row: UploadRow;
  contact: Contact;
  read: ReadUpload;
}

/**
 * Stores uploads under their identities, or recognises them; all that arrive at the same time in one transaction, and
 * each is answered after its commit.
 *
 * A redelivery is recognised before anything else is judged: what was applied must not be refused later because it
 * has aged meanwhile, or the sensor would report a gap where there is none.
 */
export function createReceiving(
  deps: InboxParts,
): (
  sensor: EnrolledSensor,
  body: Uint8Array,
  encoding: string | undefined,
  require?: UploadCheck,
) => Promise<{ receipt: TelemetryReceipt; read: ReadUpload }> {
  const store = createBatching<Received, UploadDecision>({
    itemsMax: storedMax,
    weigh: ({ row }) => row.body.length,
    weightMax: bytesMax,
    batchesMax: transactionsMax,
    run: (received) => storeTogether(deps, received),
  });
  return async (sensor, body, encoding, require) => {
    const received = await readReceived(deps.consumers, deps.intake, sensor, body, encoding, require);
    const { row } = received;
    // Held before it is stored, because a worker may begin with it as soon as it is.
    const forget = deps.decoded.hold(row, received.read);
    let isStored = false;
    let verdict: UploadDecision;
    try {
      verdict = await store(received);
      // Two deliveries met: the other one was stored between our look and our insert, so a second look finds it.
      if (!isAnswer(verdict)) verdict = await store(received);
      isStored = verdict.isStored;
    } finally {
      if (!isStored) forget();
    }
    const receipt = { spool_id: row.spoolId, sequence: row.sequence, receipt: judge(row, verdict) };
    const { read } = received;
    const setAside = countSetAside(read.setAside);
    return { receipt: setAside > 0 ? { ...receipt, set_aside: setAside } : receipt, read };
  };
}

async function readReceived(
  consumers: readonly UploadConsumer[],
  intake: Intake,
  sensor: EnrolledSensor,
  body: Uint8Array,
  encoding: string | undefined,
  require?: UploadCheck,
): Promise<Received> {
  const read = await intake.readUpload(sensor.id, body, encoding);
  require?.(read.upload);
  const { upload, digest } = read;
  const { spoolId, sequence, sensorVersion } = upload;
  const { firstMinute, lastMinute, throughMinute } = timesOf(consumers, upload);
  const { id: sensorId, siteId } = sensor;
  return {
    row: {
      sensorId,
      siteId,
      spoolId,
      sequence,
      digest,
      encoding: encoding ?? 'identity',
      body,
      firstMinute,
      lastMinute,
      throughMinute,
    },
    read,
    contact: { sensorId, sensorVersion, spoolId, sequence, newestMinute: lastMinute },
  };
}

/** The first and last minute that an upload observed, and the last that it speaks of; null where there is none. */
function timesOf(
  consumers: readonly UploadConsumer[],
  upload: TelemetryUpload,
): Pick<UploadRow, 'firstMinute' | 'lastMinute' | 'throughMinute'> {
  const times = { firstMinute: Infinity, lastMinute: -Infinity, throughMinute: -Infinity };
  for (const consumer of consumers) {
    const { observed = [], mentioned = [] } = consumer.times?.(upload) ?? {};
    for (const minute of observed) {
      times.firstMinute = Math.min(times.firstMinute, minute);
      times.lastMinute = Math.max(times.lastMinute, minute);
    }
    for (const minute of mentioned) times.throughMinute = Math.max(times.throughMinute, minute);
  }
  const orNull = (minute: number) => (Number.isFinite(minute) ? minute : null);
  return {
    firstMinute: orNull(times.firstMinute),
    lastMinute: orNull(times.lastMinute),
    throughMinute: orNull(Math.max(times.lastMinute, times.throughMinute)),
  };
}

async function storeTogether(
  deps: InboxDeps,
  received: readonly Received[],
): Promise<(UploadDecision | Error)[]> {
  try {
    return await storeOnce(deps, received);
  } catch (error) {
    if (received.length === 1 || isConnectionFailure(error)) throw error;
    // An error in one of them must not fail all.
    return Promise.all(
      received.map((one) =>
        storeOnce(deps, [one]).then(
          ([verdict]) => verdict!,
          (fault: unknown) => (fault instanceof Error ? fault : new Error(String(fault))),
        ),
      ),
    );
  }
}

async function storeOnce(deps: InboxDeps, received: readonly Received[]): Promise<UploadDecision[]> {
  // Of deliveries of one upload that came together the first is stored, and is what the others find.
  const places = new Map<string, number>();
  const first: Received[] = [];
  for (const one of received) {
    if (places.has(identityOf(one))) continue;
    places.set(identityOf(one), first.length);
    first.push(one);
  }
  const verdicts = await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      const found = await storeUploads(
        trx,
        first.map(({ row }) => row),
        ahead,
      );
      const heard = first.filter((_one, i) => !found[i]!.isOld && found[i]!.ahead === null);
      if (heard.length > 0) await deps.sensors.noteContacts(trx, latestContacts(heard));
      return found;
    });
  return received.map((one) => {
    const place = places.get(identityOf(one))!;
    const verdict = verdicts[place]!;
    if (one === first[place] || !verdict.isStored) return verdict;
    return { ...verdict, isStored: false, knownDigest: first[place]!.row.digest };
  });
}

function identityOf({ row }: Received): string {
  return `${row.sensorId} ${row.spoolId} ${row.sequence}`;
}

/** One contact for each sensor: where its newest upload stands. */
function latestContacts(received: readonly Received[]): Contact[] {
  const contacts = new Map<number, Contact>();
  for (const { contact } of received) {
    const held = contacts.get(contact.sensorId);
    const isLater =
      !held || held.spoolId !== contact.spoolId || held.sequence < contact.sequence ? contact : held;
    const newestMinute = Math.max(held?.newestMinute ?? 0, contact.newestMinute ?? 0) || null;
    contacts.set(contact.sensorId, { ...isLater, newestMinute });
  }
  return [...contacts.values()];
}

function isAnswer(verdict: UploadDecision): boolean {
  const { isStored, isCovered, knownDigest, isOld, ahead } = verdict;
  return isStored || isCovered || knownDigest !== null || isOld || ahead !== null;
}

/** NET-7.1 speaks of minutes; a gap of any age is taken, or the note of a refusal would be refused in turn. */
function judge(row: UploadRow, verdict: UploadDecision): 'accepted' | 'duplicate' {
  if (verdict.isStored) return 'accepted';
  if (verdict.isCovered) return 'duplicate';
  if (verdict.knownDigest) {
    if (verdict.knownDigest.equals(row.digest)) return 'duplicate';
    throw refused(
      'this spool has used that sequence for another upload; the spool file was probably restored from a copy',
    );
  }
  if (verdict.isOld) throw refused(retentionRefusalMessage);
  if (verdict.ahead === 'refuse')
    throw refused('minute telemetry lies in the future; set the clock of this host');
  if (verdict.ahead === 'wait') throw new CodedError('telemetry.clock_ahead', clockAheadMessage);
  // Neither stored nor known: another transaction held the identity and rolled back. The sensor retries.
  throw new Error('an upload was neither stored nor found');
}

function refused(message: string): CodedError {
  return new CodedError('telemetry.refused', message);
}
