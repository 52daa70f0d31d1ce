import type { CodedError } from '#common/errors/index.ts';
import type { HttpError } from '#service-kit/http/index.ts';
import { notFound } from '../select-tenant.ts';
import { type InputFault, invalidFields } from '../validate-input.ts';
import { noFinding } from './findings.routes.ts';
import { protectDisabled } from './incidents.routes.ts';

/** What a refused ignore is on the wire; null for any other error. */
export function translateFindingError({ code, details, message }: CodedError): HttpError | null {
  switch (code) {
    case 'protect_findings.not_found':
      return notFound();
    case 'protect_findings.no_finding':
      return noFinding();
    case 'protect_findings.views_off':
      return protectDisabled();
    case 'protect_findings.invalid': {
      const fields = details.fields as Omit<InputFault, 'code'>[];
      return invalidFields(
        fields.map((field) => ({ code: 'invalid_value', ...field })),
        undefined,
        message,
      );
    }
    default:
      return null;
  }
}
