import { CodedError } from '#common/errors/index.ts';
import { systemJob } from '#operations/accounts/index.ts';
import { formatQuanta, parseMoney } from '#operations/billing/index.ts';
import { withFeatures } from './with-features.ts';

export async function addCredit(options: {
  tenant: number;
  amount: string;
  reference: string;
}): Promise<void> {
  const amountQuanta = parseMoney(options.amount) ?? 0;
  if (amountQuanta === 0)
    throw new CodedError(
      'command.bad_amount',
      `--amount must be an amount such as 25.00, not "${options.amount}".`,
    );
  await withFeatures(async ({ accounts, billing }) => {
    const tenant = await accounts.findTenant(options.tenant);
    if (tenant === null) throw new CodedError('command.no_tenant', `There is no tenant ${options.tenant}.`);
    const isNew = await billing.addDeposit(systemJob('add-credit'), tenant.id, {
      amountQuanta,
      reference: options.reference,
      description: `Deposit ${options.reference}`,
    });
    const balance = formatQuanta(await billing.balanceOf(systemJob('add-credit'), tenant.id));
    const said = isNew ? 'recorded' : 'was recorded before';
    process.stdout.write(`${options.reference} ${said}; ${tenant.name} has ${balance} ${tenant.currency}\n`);
  });
}
