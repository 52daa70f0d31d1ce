/** Rules for a network's name, description and labels. The API and the portal apply the same rules. */
import { schemas } from '#contracts/customer-api/index.ts';
import { invalidField } from './errors.ts';

const plainTextPattern = new RegExp(schemas.plainTextPattern);
const namePattern = new RegExp(schemas.namePattern);

/** Throws `networks.invalid`. */
export function validateNetworkFields(fields: {
  name?: string | undefined;
  description?: string | null | undefined;
  labels?: Readonly<Record<string, string | null>> | undefined;
}): void {
  const { name, description, labels } = fields;
  if (name !== undefined && (name.length < 1 || [...name].length > 64 || !namePattern.test(name))) {
    const message = 'must be 1 to 64 characters without spaces around them and without control characters';
    throw invalidField('name', 'pattern', message);
  }
  if ([...(description ?? '')].length > 255)
    throw invalidField('description', 'maxLength', 'must be at most 255 characters');
  const unseen = 'must not contain control characters or characters that turn the direction of writing';
  if (!plainTextPattern.test(description ?? '')) throw invalidField('description', 'pattern', unseen);
  for (const [key, value] of Object.entries(labels ?? {}))
    if (!plainTextPattern.test(value ?? '')) throw invalidField(`labels.${key}`, 'pattern', unseen);
}
