import { CodedError } from '#common/errors/index.ts';
import { systemJob } from '#operations/accounts/index.ts';
import { withFeatures } from './with-features.ts';

/** Mints a key and prints its token on standard output, alone on its line. */
export async function issueKeyCommand(options: {
  email: string;
  organization?: number;
  name: string;
  scope: 'read' | 'full';
  days: number;
  /** False for a key that does not expire. */
  expiry: boolean;
}): Promise<void> {
  await withFeatures(async ({ accounts, apiKeys }) => {
    const person = await accounts.findPersonByEmail(options.email);
    if (person === null)
      throw new CodedError('command.no_person', `No person has the email ${options.email}.`);
    const memberships = await accounts.membershipsOf(person.id);
    const choice = memberships.filter(
      (one) => options.organization === undefined || one.organizationId === options.organization,
    );
    if (choice.length !== 1) {
      const known = memberships.map((one) => `${one.organizationId} (${one.organizationName})`).join(', ');
      throw new CodedError('command.no_organization', `Name one --organization of: ${known || 'none'}.`);
    }
    const issued = await apiKeys.issueKey(systemJob('issue-key'), {
      organizationId: choice[0]!.organizationId,
      personId: person.id,
      name: options.name,
      scope: options.scope,
      tenantIds: null,
      expiresAt: options.expiry ? new Date(Date.now() + options.days * 86_400_000) : null,
    });
    process.stdout.write(`${issued.token}\n`);
  });
}
