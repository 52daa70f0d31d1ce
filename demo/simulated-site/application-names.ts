/** Names of applications that servers of the simulated site use. All are below `.example`, which is reserved for documentation. */

const first = [
  'blue',
  'clear',
  'early',
  'fair',
  'grand',
  'keen',
  'lucky',
  'north',
  'open',
  'quick',
  'silver',
];
const second = ['market', 'courier', 'metrics', 'mirror', 'payments', 'photos', 'radio', 'search', 'travel'];
const third = ['weather', 'wiki'];

/** 121 domains, in the order of their use. */
export const domains: readonly string[] = [...second, ...third].flatMap((noun, row) =>
  first.map((_, column) => `${first[(row + column) % first.length]}${noun}.example`),
);
