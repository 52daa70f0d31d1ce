/** `./svc monitor add-operator EMAIL`: creates the first person, on the machine itself. */
import { text } from 'node:stream/consumers';
import { startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import type { OperatorRole } from '../operators/index.ts';

export async function addOperator(
  environment: NodeJS.ProcessEnv,
  person: { email: string; name: string; role: OperatorRole },
): Promise<number> {
  const monitor = compose(readConfig(environment), { embedded: 'existing' });
  if (process.stdin.isTTY) process.stderr.write('Password, then Ctrl-D: ');
  const password = (await text(process.stdin)).replace(/\r?\n$/, '');
  const stop = await startParts([monitor.database], monitor.reporter);
  try {
    const operator = await monitor.operators.add({ ...person, password });
    // The old password may have been stolen, so all sessions end.
    await monitor.sessions.endAll(operator.id);
    process.stdout.write(`${operator.email} can sign in as ${operator.role}.\n`);
    return 0;
  } finally {
    await stop();
  }
}
