/** A world (`create-world.ts`) with a date of its own (`world-time.ts`), for every test that no other program takes part in. */
import { createWorld as createAnyWorld, type World, type WorldOptions } from './create-world.ts';

export { password, type World } from './create-world.ts';

export const createWorld = (options: WorldOptions = {}): Promise<World> =>
  createAnyWorld({ ...options, isDated: true });
