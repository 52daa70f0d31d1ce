/** SQLite's errors sorted by what the spool does about them. */
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';

/** Primary result codes of SQLite. */
const logicError = 1;
const constraint = 19;
const busy = 5;
const ioError = 10;
const corrupt = 11;
const full = 13;
const cantOpen = 14;
const readOnly = 8;
const notADatabase = 26;
/** The file ends within a page (an extended code of `ioError`): that is no failure of the disk, it will not pass. */
const shortRead = 522;

function extendedCodeOf(error: unknown): number {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code : 0;
}

const codeOf = (error: unknown) => extendedCodeOf(error) & 0xff;

/** True when the file is damaged rather than the disk full or busy. */
export function isDamage(error: unknown): boolean {
  // The statements never change: one that the file does not understand, or a row that breaks a rule, is damage too.
  const signs = [corrupt, notADatabase, logicError, constraint];
  return (
    signs.includes(codeOf(error)) || extendedCodeOf(error) === shortRead || hasCode(error, 'spool.damaged')
  );
}

/** True when the handle must not be trusted any more and the file is to be opened anew. */
export function breaksHandle(error: unknown): boolean {
  const code = codeOf(error);
  return (code === ioError && !isDamage(error)) || code === cantOpen || code === readOnly;
}

/** The error that callers of the spool see. */
export function spoolError(error: unknown, directory: string): CodedError {
  if (error instanceof CodedError) return error;
  const why = describeError(error);
  switch (codeOf(error)) {
    case full:
      return new CodedError('spool.full', `The spool in ${directory} or its disk is full.`, {}, error);
    case busy:
      return new CodedError(
        'spool.in_use',
        `Another sensor already uses ${directory}. Stop it, or give this one another SVC_SENSOR_STATE_DIR.`,
        {},
        error,
      );
    default: {
      const isDenied = /EACCES|EPERM|EROFS|ENOTDIR/.test(why) || [cantOpen, readOnly].includes(codeOf(error));
      const remedy = isDenied ? " Give the folder to the sensor's user, or set SVC_SENSOR_STATE_DIR." : '';
      return new CodedError(
        'spool.failed',
        `The spool in ${directory} can't be used: ${why}.${remedy}`,
        {},
        error,
      );
    }
  }
}
