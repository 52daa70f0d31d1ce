/** `./svc sensor read FILE…`: reads capture files and prints to this process's output. Resolves with the exit code. */
import { type ReadOptions, readFiles } from '#sensor/capture-reader/index.ts';
import { openScreen } from './open-screen.ts';

export async function read(paths: readonly string[], options: ReadOptions): Promise<number> {
  return readFiles(paths, options, openScreen('read'));
}
