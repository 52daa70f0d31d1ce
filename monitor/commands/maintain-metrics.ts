/** `./svc monitor maintain_metrics`: the hourly retention job, once (NET-4.5). */
import { startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';

export async function maintainMetrics(environment: NodeJS.ProcessEnv): Promise<number> {
  const { database, retention, reporter } = compose(readConfig(environment), { embedded: 'existing' });
  const stop = await startParts([database], reporter);
  try {
    const counts = await retention.runOnce();
    if (counts === null) process.stdout.write('Another process is running this already; nothing was done.\n');
    else {
      const lines = Object.entries(counts).map(([name, count]) => `${name.padEnd(30)} ${count}`);
      process.stdout.write(lines.length > 0 ? `Removed:\n${lines.join('\n')}\n` : 'Nothing has expired.\n');
    }
    return 0;
  } finally {
    await retention.loop.stop();
    await stop();
  }
}
