/**
 * Secrets at rest: what a program has to use again (tokens, signing secrets) is sealed in its database.
 *
 * Envelope encryption: a data key in the table `data_keys` seals secrets with AES-256-GCM, bound to table, column and
 * row. The data key is wrapped by a key that is not in the database: of a key file, or of a key management service
 * behind a command. Without that key the program does not start and changes nothing. What only has to be compared
 * (passwords, API keys) is not kept here: a digest is enough.
 */

export { createKeyWrapper, type KeyWrapper } from './key-wrapper.ts';
export type { SecretColumn } from './secret-column.ts';
export { createSecrets, type Secrets } from './secrets.ts';
