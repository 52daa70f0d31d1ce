/**
 * What a kind of record tells the spool about itself. The kinds are in `sensor/records`, one file each.
 *
 * The spool keeps uploads as bytes and counts which minutes are covered. Everything else it has to know of a record is
 * asked of its kind: how urgent it is, what is to be said if it is lost, and how it moves when its clock was wrong.
 */
import type { TelemetryGap, TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import type { Shift } from './stamps.ts';

/** Records of an upload by their kind: everything in it but its identity. */
export type UploadContent = Omit<TelemetryUpload, 'spoolId' | 'sequence' | 'sensorVersion'>;
/** The name of a kind is its field in an upload. */
export type RecordName = keyof UploadContent;
/** Records that go with minutes and gaps. */
export type OtherRecords = Omit<UploadContent, 'minutes' | 'gaps'>;

export interface RecordKind<Name extends RecordName = RecordName> {
  readonly name: Name;
  /** `urgent` records get an upload of their own, sent before everything that is `bulk`, as minutes and gaps always are. */
  readonly priority: 'urgent' | 'bulk';
  /**
   * True: these records are committed also where no minute is, and again when it is not known whether their commit took
   * place. The monitor has to tell a repetition from new records. False: they only go with minutes.
   */
  readonly goesAlone: boolean;
  /** How many records of this kind the upload holds. */
  count(content: UploadContent): number;
  /** The gaps that take the place of its records when they can't be delivered; none: their loss means nothing. */
  lostAs(content: UploadContent): TelemetryGap[];
  /** Its records by the right clock; empty where the upload has none. Asked of every kind with the same upload. */
  restamp(content: UploadContent, shift: Shift, nowMs: number): Partial<Pick<UploadContent, Name>>;
}

/** Records of one kind that a part of the sensor has for the next commit. */
export interface RecordSource<Name extends Exclude<RecordName, 'minutes' | 'gaps'>> {
  readonly kind: RecordKind<Name>;
  /** What no disk holds yet, until it is committed; null or empty: nothing. */
  ready(): NonNullable<UploadContent[Name]> | null;
  /** These lie on disk now. */
  committed?(records: NonNullable<UploadContent[Name]>): void;
}

/** True where an upload of these records is worth sending. */
export function isWorthSending(kinds: readonly RecordKind[], content: UploadContent): boolean {
  return kinds.some((kind) => kind.goesAlone && kind.count(content) > 0);
}

/** The records by the right clock. */
export function restampContent<C extends UploadContent>(
  kinds: readonly RecordKind[],
  content: C,
  shift: Shift,
  nowMs: number,
): C {
  return Object.assign({ ...content }, ...kinds.map((kind) => kind.restamp(content, shift, nowMs)));
}

/** Urgent records, each kind apart, and all the others together; null where there are no others. */
export function divideByPriority(
  kinds: readonly RecordKind[],
  content: UploadContent,
): { urgent: UploadContent[]; bulk: UploadContent | null } {
  const urgent = kinds.filter((kind) => kind.priority === 'urgent' && kind.count(content) > 0);
  if (urgent.length === 0) return { urgent: [], bulk: content };
  const bulk = { ...content };
  for (const { name } of urgent) delete (bulk as Partial<UploadContent>)[name];
  return {
    urgent: urgent.map(({ name }) => ({ minutes: [], gaps: [], [name]: content[name] })),
    bulk: isWorthSending(kinds, bulk) ? bulk : null,
  };
}
