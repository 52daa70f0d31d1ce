/** A world's supervisor as a process of its own, so that tests can kill it. Arguments: data directory, guest's JSON. */
import { silentReporter } from '#common/reporter/index.ts';
import { createLab, type GuestInput } from '../index.ts';

const [dataDir, guest] = process.argv.slice(2) as [string, string];
const lab = createLab({ dataDir, reporter: silentReporter, outboundPerSecond: 2, inboundPerSecond: 2 });
await lab.start();
await lab.put(JSON.parse(guest) as GuestInput);
process.stdout.write('up\n');
