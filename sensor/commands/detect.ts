/** `./svc sensor detect FILE`: finds the attacks in a capture file. Resolves with the exit code. */
import { type DetectOptions, detectFile } from '#sensor/capture-reader/index.ts';
import { openScreen } from './open-screen.ts';

export async function detect(path: string, options: DetectOptions): Promise<number> {
  return detectFile(path, options, openScreen('detect'));
}
