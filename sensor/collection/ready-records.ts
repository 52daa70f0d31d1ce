/** What the parts of the sensor have ready for the next commit. */
import type { OtherRecords, RecordSource } from '#sensor/spool/index.ts';

export type AnyRecordSource = { [Name in keyof OtherRecords]-?: RecordSource<Name> }[keyof OtherRecords];

export type ReadyRecords = ReturnType<typeof takeReady>;

/** Takes what is ready. Records that do not go alone wait for minutes. */
export function takeReady(sources: readonly AnyRecordSource[], hasMinutes: boolean) {
  const records: OtherRecords = {};
  const ends = sources.filter(({ kind }) => hasMinutes || kind.goesAlone).map((one) => take(one, records));
  return {
    records,
    /** Says that they lie on disk now. */
    committed() {
      for (const end of ends) end();
    },
  };
}

function take<Name extends keyof OtherRecords>(
  source: RecordSource<Name>,
  records: OtherRecords,
): () => void {
  const ready = readyOf(source);
  if (!ready) return () => {};
  records[source.kind.name] = ready;
  return () => source.committed?.(ready);
}

function readyOf<Name extends keyof OtherRecords>(source: RecordSource<Name>): OtherRecords[Name] | null {
  const ready = source.ready();
  const isEmpty =
    ready === null || source.kind.count({ minutes: [], gaps: [], [source.kind.name]: ready }) === 0;
  return isEmpty ? null : ready;
}

/** True where something is ready that is worth a commit of its own. */
export function hasReady(sources: readonly AnyRecordSource[]): boolean {
  return sources.some((source) => source.kind.goesAlone && readyOf(source) !== null);
}
