/**
 * `svc-sensor compile`, which the package calls when it is installed: compiles what a running sensor loads and keeps it in
 * `NODE_COMPILE_CACHE`. A first start that compiles takes half a second and some 35 MiB more, for as long as it runs.
 */
import { flushCompileCache } from 'node:module';
import { compileThread } from '#sensor/collection/index.ts';

/** Loads the modules of every command and of a capturing thread, and has their compiled code written. */
export async function compile(): Promise<void> {
  await Promise.all([
    import('./run.ts'),
    import('./read.ts'),
    import('./top.ts'),
    import('./check.ts'),
    import('./enrol.ts'),
  ]);
  await compileThread();
  flushCompileCache();
}
