import { text } from 'node:stream/consumers';
import { CodedError } from '#common/errors/index.ts';
import { systemJob } from '#operations/accounts/index.ts';
import { withFeatures } from './with-features.ts';

/** Creates one of our own people; the password comes on standard input, where no process list shows it. */
export async function createOperator(options: {
  email: string;
  name: string;
  role: 'operator' | 'support';
}): Promise<void> {
  if (process.stdin.isTTY) process.stderr.write('Password, then Enter and Ctrl-D: ');
  const password = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (password === '')
    throw new CodedError(
      'command.no_password',
      'Give the password on standard input: echo … | ./svc operations create-operator …',
    );
  await withFeatures(async ({ accounts }) => {
    const person = await accounts.createPerson(systemJob('create-operator'), {
      email: options.email,
      name: options.name,
      password,
      staffRole: options.role,
    });
    process.stdout.write(`${options.role} ${person.email} created (person ${person.id})\n`);
  });
}
