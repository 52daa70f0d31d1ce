/** What is wrong with a field of a form, in words for the person who filled it. */

export interface FieldFault {
  /** Where the field is: `name`, `addresses.0`. */
  path: string;
  /** As the check said it (JSON Schema), or in words already. */
  message: string;
}

const words: readonly (readonly [RegExp, string])[] = [
  [/^must not have more than (\d+) characters$/i, 'has more than $1 characters'],
  [/^must not have fewer than 1 characters$/i, 'is empty'],
  [/^must not have fewer than (\d+) characters$/i, 'has fewer than $1 characters'],
  [/^must not have more than (\d+) items$/i, 'has more than $1 entries'],
  [/^must match pattern .*$/is, 'has another form than it must have, or characters that are not allowed'],
  [/^must match format "(.*)"$/i, 'is not a valid $1'],
  [/^must be >= (.*)$/i, 'is less than $1'],
  [/^must be <= (.*)$/i, 'is more than $1'],
  [/^must be integer$/i, 'is not a whole number'],
  [/^must be number$/i, 'is not a number'],
  [/^must be (equal to one of the allowed values|equal to constant)$/i, 'is none of the choices'],
  [/^is required$/i, 'is missing'],
];

/** `legalName`, `legal_name` and `legal-name` become `Legal name`. */
function labelOf(path: string): string {
  const text = path
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[_-]/g, ' ')
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** One line for a fault: `Name has more than 100 characters.` */
export function faultText({ path, message }: FieldFault): string {
  const missing = /^must have required propert(?:y|ies) (.*)$/i.exec(message);
  if (missing) return `${labelOf(missing[1]!.replaceAll(/['"]/g, ''))} is missing.`;
  const found = words.find(([pattern]) => pattern.test(message));
  const said = found === undefined ? message : message.replace(found[0], found[1]);
  return `${path === '' ? 'The form' : labelOf(path)} ${said}${said.endsWith('.') ? '' : '.'}`;
}
