/**
 * `svc-sensor compile`, called when the package is installed: compiles the modules of a running sensor into
 * `NODE_COMPILE_CACHE`. Without it the first start takes half a second longer, and 35 MiB more memory while it runs.
 */
import { flushCompileCache } from 'node:module';
import { compileThread } from '#sensor/collection/index.ts';

/** Loads the modules of every command and of a capture thread, and writes their compiled code. */
export async function compile(): Promise<void> {
  await Promise.all([
    import('./run.ts'),
    import('./read.ts'),
    import('./read.ts'),
    import('./top.ts'),
    import('./check.ts'),
    import('./enrol.ts'),
  ]);
  await compileThread();
  flushCompileCache();
}
