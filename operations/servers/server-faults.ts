import { CodedError } from '#common/errors/index.ts';

/** A field that can't stand as it was given; goes out as one entry of a 422. */
export interface FieldFault {
  path: string;
  code: string;
  message: string;
  allowed?: (string | number)[];
}

/** The refusal of an input, with every fault in it. */
export function invalidServer(fields: FieldFault[]): CodedError {
  return new CodedError('servers.invalid', 'Some fields are not as they must be; see `fields`.', { fields });
}
