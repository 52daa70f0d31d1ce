/** `./svc monitor add-operator EMAIL`: the first person has to come from the machine itself. */
import { text } from 'node:stream/consumers';
import { startParts } from '#common/lifecycle/index.ts';
import { composeMonitor } from '../composition.ts';
import { readConfig } from '../config.ts';
import type { OperatorRole } from '../operators/index.ts';

export async function addOperator(
  environment: NodeJS.ProcessEnv,
  person: { email: string; name: string; role: OperatorRole },
): Promise<number> {
  const monitor = composeMonitor(readConfig(environment), { mayJoin: true });
  if (process.stdin.isTTY) process.stderr.write('Password, then Ctrl-D: ');
  const password = (await text(process.stdin)).replace(/\r?\n$/, '');
  const stop = await startParts([monitor.database], monitor.reporter);
  try {
    const operator = await monitor.operators.add({ ...person, password });
    // A person whose password is renewed may have lost the old one to a stranger.
    await monitor.sessions.endAll(operator.id);
    process.stdout.write(`${operator.email} may sign in as ${operator.role}.\n`);
    return 0;
  } finally {
    await stop();
  }
}
