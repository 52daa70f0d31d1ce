/**
 * Imported for its effect: passwords of this process cost next to nothing. A world's people are hashed by the hundred, and
 * how long that takes is no test's matter; `sessions.test.ts` sees to what hashing costs the others.
 */
import { cost } from '../passwords.ts';

Object.assign(cost, { memory: 8, passes: 1 });
