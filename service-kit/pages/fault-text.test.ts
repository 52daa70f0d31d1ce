import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultText } from './error.page.ts';

test('a fault of a field is said in words, with the name of the field', () => {
  const said = [
    { path: 'name', message: 'must NOT have more than 100 characters' },
    { path: 'name', message: 'must not have fewer than 1 characters' },
    { path: 'legalName', message: 'must match pattern "^\\\\S.*\\n$"' },
    { path: 'contact_email', message: 'must match format "email"' },
    { path: 'port', message: 'must be <= 65535' },
    { path: '', message: "must have required property 'cidr'" },
    { path: 'plan', message: 'must be equal to one of the allowed values' },
    { path: 'timestamp', message: 'is a minute that is not over yet' },
    { path: '', message: 'must be object' },
  ].map(faultText);
  assert.deepEqual(said, [
    'Name has more than 100 characters.',
    'Name is empty.',
    'Legal name has another form than it must have, or characters that are not allowed.',
    'Contact email is not a valid email.',
    'Port is more than 65535.',
    'Cidr is missing.',
    'Plan is none of the choices.',
    'Timestamp is a minute that is not over yet.',
    'The form must be object.',
  ]);
});
