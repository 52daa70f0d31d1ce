import { CodedError } from '#common/errors/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';

/** A refusal, and the field of the form that it is about. */
export interface FieldFault {
  field: string;
  message: string;
}

/**
 * Runs a change of a feature; its refusal, or null. What is gone by now is the usual 404. `fieldNames`: the form's names of
 * fields that the feature calls otherwise.
 */
export async function faultOf(
  feature: string,
  fieldNames: Readonly<Record<string, string>>,
  change: () => Promise<unknown>,
): Promise<FieldFault | null> {
  try {
    await change();
    return null;
  } catch (error) {
    if (!(error instanceof CodedError) || !error.code.startsWith(`${feature}.`)) throw error;
    if (error.code === `${feature}.not_found`) throw noSuchPage();
    const field = String(error.details.field ?? 'name');
    return { field: fieldNames[field] ?? field, message: error.message };
  }
}
