/** A sensor to be restarted: the whole program, as the user who runs the proof. Its settings are in the environment. */
import { run } from '#sensor/commands/run.ts';

process.exitCode = await run(process.env);
