import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import { type OperationsClient, safeFaultText } from './client.ts';
import { openConnection } from './save-secrets.ts';
import { writeCheck } from './store.ts';

/**
 * Queries the permissions of the token's project and stores them (NET-4.l, NET-5.1).
 *
 * Permissions granted since then take effect with the same token. Throws `OperationsError`.
 */
export async function checkConnection(
  db: Queryable,
  secrets: Secrets,
  createClient: (connection: { baseUrl: string; token: string }) => OperationsClient,
): Promise<void> {
  const connection = await openConnection(db, secrets);
  if (!connection) throw new CodedError('connection.invalid', 'No connection is saved yet.');
  try {
    const { project, capabilities } = await createClient(connection).discover();
    await writeCheck(db, connection.revision, {
      projectName: project.name.slice(0, 200),
      capabilities: known(capabilities),
    });
  } catch (error) {
    await writeCheck(db, connection.revision, { error: safeFaultText(error) });
    throw error;
  }
}

/** The list is limited before it is stored: a valid answer has few flags. */
function known(capabilities: Record<string, true | number>): Record<string, true | number> {
  const entries = Object.entries(capabilities).filter(([name]) => /^[a-z0-9_]{1,80}$/.test(name));
  return Object.fromEntries(entries.slice(0, 100));
}
