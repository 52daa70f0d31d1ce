/**
 * What every engine behind `FactStore` has to do: answer like the rules in plain memory, to the byte, for any order of what came in
 * which order, before and after a roll-up and while an hour waits to be rolled up again.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ExploredFilter } from '../contract/exploration.ts';
import type { FactStore } from '../contract/fact-store.ts';
import type { Direction, FactOrigin, FactUpload, SiteRange, ViewRange } from '../contract/facts.ts';
import { compareTogether } from './explore-together.ts';
import type { MemoryFacts } from './memory/memory-facts.ts';
import { randomExploration, randomRemainder } from './random-exploration.ts';
import { type Random, randomUpload, sampleAddresses, sampleKeys, seededBelow } from './random-uploads.ts';

/** An engine with the sites and sensors that uploads come from. */
export interface StoreUnderTest {
  facts: FactStore;
  origins: readonly FactOrigin[];
  /** Moves a server at random, where the store knows any. */
  move?(random: Random): Promise<void>;
  /** Makes room and appends in one scope, as the inbox does. */
  append(uploads: readonly FactUpload[]): Promise<void>;
}

export interface ConformanceOptions {
  model: MemoryFacts;
  seed: number;
  /** Uploads of each of the stages. */
  uploads: number;
  /** Ranges asked about after each stage. */
  questions: number;
  nowSecond: number;
  /** Of an engine that rolls nothing up, without those that are for that; all when absent. */
  stages?: readonly (typeof stages)[number][];
}

const stages = ['from facts alone', 'rolled up', 'with late facts', 'rolled up again'] as const;

/** Feeds both the same at random and asks both the same; returns where they differ. */
export async function checkConformance(
  store: StoreUnderTest,
  options: ConformanceOptions,
): Promise<string[]> {
  const random = seededBelow(options.seed);
  const minutes = sampleMinutes(options.nowSecond);
  const offences: string[] = [];
  for (const stage of options.stages ?? stages) {
    if (stage !== 'rolled up') {
      const uploads = Array.from({ length: options.uploads }, () =>
        randomUpload(random, { origins: store.origins, minutes }),
      );
      await feed(store, options.model, uploads, random);
    }
    // Without it sites' own minutes would lag behind; hours stay as they are.
    await store.facts.rollUp(stage.startsWith('rolled up') ? 'all' : 'settled');
    offences.push(...(await compareAnswers(store, { ...options, random, minutes, stage, isTogether: true })));
  }
  return offences;
}

/**
 * Asks both the same questions at random about some ranges; returns where they differ. `isTogether`: also views that are
 * asked for together, which a store answers as it does alone. That says nothing of two engines, so moves leave it out.
 */
export async function compareAnswers(
  store: StoreUnderTest,
  about: Pick<ConformanceOptions, 'model' | 'questions'> & {
    random: Random;
    minutes: readonly number[];
    stage: string;
    isTogether?: boolean;
  },
): Promise<string[]> {
  const { model, random, minutes, stage } = about;
  const offences: string[] = [];
  const names = await Promise.all([store.facts, model].map((facts) => nameCaptures(facts, store.origins)));
  for (let i = 0; i < about.questions; i += 1) {
    const range = randomRange(random, store.origins, minutes);
    for (const [question, ask] of [
      ...questionsAbout(random, range),
      ...explorations(random, range, store.origins),
    ]) {
      const told = await answer(store.facts, range, ask, names[0]!);
      const expected = await answer(model, range, ask, names[1]!);
      if (!isDeepStrictEqual(told, expected))
        offences.push(`${stage}, ${question} of ${JSON.stringify(range)}: ${difference(told, expected)}`);
    }
    if (!about.isTogether) continue;
    const sensorIds = store.origins.map((one) => one.sensorId);
    const apart = await compareTogether(store.facts, random, range, sensorIds);
    offences.push(...apart.map((offence) => `${stage}, together: ${offence}`));
  }
  return offences;
}

/** Some minutes of the hours around now, of the day before (none that stops counting while a test runs), and of long ago. */
export function sampleMinutes(nowSecond: number): number[] {
  const hour = Math.floor(nowSecond / 3600) * 3600;
  const starts = [hour - 3600, hour - 3540, hour - 7200, hour - 60, hour - 10_800, hour - 5 * 3600];
  const old = [hour - 22 * 3600, hour - 26 * 3600, hour - 26 * 3600 + 60, hour - 15 * 86_400];
  return [...starts, ...old].concat(hour - 3600 + 120);
}

async function feed(
  store: StoreUnderTest,
  model: MemoryFacts,
  uploads: readonly FactUpload[],
  random: Random,
): Promise<void> {
  // The engine gets them in batches of any size and in another order than the model, late and early mixed.
  const shuffled = uploads
    .map((upload) => [random(1_000_000), upload] as const)
    .sort(([a], [b]) => a - b)
    .map(([, upload]) => upload);
  while (shuffled.length > 0) {
    if (random(3) === 0) await store.move?.(random);
    const batch = shuffled.splice(0, 1 + random(6));
    await store.append(batch);
    // Their marks were lost: the same again, beside what is new.
    if (random(3) === 0) await store.append([...batch, ...shuffled.splice(0, random(2))]);
    if (random(4) === 0) await store.facts.rollUp(random(2) === 0 ? 'all' : 'settled');
  }
  await model.append(uploads);
}

function randomRange(random: Random, origins: readonly FactOrigin[], minutes: readonly number[]): SiteRange {
  const { siteId } = origins[random(origins.length)]!;
  const first = Math.min(...minutes);
  const last = Math.max(...minutes) + 3600;
  const kind = ['wide', 'late', 'around'][random(3)]!;
  if (kind === 'around') {
    // Ends within hours, so that everything smaller than an hour is asked for.
    const fromMinute = minutes[random(minutes.length)]! - 60 * random(30);
    return { siteId, fromMinute, toMinute: fromMinute + 60 * (1 + random(59)) };
  }
  const from = kind === 'wide' ? first - 60 * random(200) : last - 60 * (60 + random(400));
  const snap = random(2) === 0 ? 3600 : 60;
  const fromMinute = Math.floor(from / snap) * snap;
  return { siteId, fromMinute, toMinute: Math.ceil((last - 60 * random(60)) / snap) * snap };
}

/** Sums over any dimensions; what they were read from is the engine's own affair. */
function explorations(random: Random, range: SiteRange, origins: readonly FactOrigin[]): [string, Ask][] {
  const sensorIds = origins.map((one) => one.sensorId);
  return [randomExploration, randomExploration, randomRemainder].map((make) => {
    const asked = make(random, range, sensorIds);
    const { siteId: _, ...shown } = asked;
    return [
      `explore ${JSON.stringify(shown)}`,
      async (facts, siteId) => ({ ...(await facts.explore({ ...asked, siteId })), grains: null }),
    ];
  });
}

type Ask = (facts: FactStore, siteId: number) => Promise<unknown>;

function questionsAbout(random: Random, range: SiteRange): [string, Ask][] {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const segment = pick([undefined, '', 'br0', 'br1']);
  const address = {
    ...range,
    address: pick(sampleAddresses),
    ...(segment === undefined ? {} : { segment }),
  };
  // Of several addresses and of parts of the range, one of them twice.
  const middle = range.fromMinute + 60 * Math.floor((range.toMinute - range.fromMinute) / 120);
  const rowsMax = 10 + random(200);
  const several = [
    address,
    { ...range, address: pick(sampleAddresses), toMinute: middle },
    { ...address, fromMinute: middle },
    address,
  ];
  const direction = pick<Direction | null>(['outbound', 'inbound', 'internal', 'transit', null]);
  const view = { ...range, direction };
  const limit = 1 + random(20);
  const prefix = pick([
    '198.51.100.0/24',
    '198.51.0.0/16',
    '2001:db8:ffff::/48',
    '::/0',
    '203.0.113.0/24',
    '192.0.2.0/24',
  ]);
  const step = pick([60, 300, 3600, 86_400]);
  const names = [['example.net'], ['example.org', 'SSH'], []][random(3)]!;
  const nameContains = pick(['', '', 'EXAMPLE', 'ssh']);
  const deviceKey = pick(sampleKeys);
  const key = pick([
    { name: 'example.net', protocol: 6, serverPort: 443 },
    { name: 'SSH', protocol: 6, serverPort: 22 },
    { name: 'GRE', protocol: 47, serverPort: null },
  ]);
  return [
    ['readAddress', (facts) => facts.readAddress(address)],
    ['readAddresses', (facts) => facts.readAddresses(several)],
    ['explainAddress', (facts) => facts.explainAddress(address)],
    [
      'listSpeakers',
      async (facts, siteId) => {
        const asked = sampleAddresses.flatMap((one) =>
          [range.fromMinute, middle, range.toMinute - 60].map((minute) => ({ address: one, minute })),
        );
        const told = await facts.listSpeakers(siteId, asked);
        return told.map((one) => `${one.address} ${one.minute}`).sort();
      },
    ],
    ['listForeign', (facts) => facts.listForeign({ ...range, sensorId: null }, limit)],
    ['sumSite', (facts) => facts.sumSite({ ...range, stepSeconds: step })],
    ['listTopAddresses', (facts) => facts.listTopAddresses(range, limit)],
    ['listGaps', (facts) => facts.listGaps(range, limit)],
    ['listCaptures', (facts) => facts.listCaptures(range.siteId, range.fromMinute)],
    [
      'listLosses',
      async (facts) =>
        (await facts.listLosses(range.fromMinute, range.toMinute))
          .map((one) => textOf({ ...one, captureId: 0 }))
          .sort(),
    ],
    [
      'listOutages',
      async (facts) =>
        (await facts.listOutages(range.fromMinute)).map((one) => textOf({ ...one, captureId: 0 })).sort(),
    ],
    ['sumCollection', (facts) => facts.sumCollection(range)],
    ['newestMinutes', async (facts) => (await facts.newestMinutes()).get(range.siteId)],
    ['readAddressApplications', (facts) => facts.readAddressApplications(address)],
    ['readAddressesApplications', (facts) => facts.readAddressesApplications(several, rowsMax)],
    ['sumAddressApplications', (facts) => facts.sumAddressApplications(address)],
    ['rankApplications', (facts) => facts.rankApplications({ ...view, limit, nameContains })],
    ['names over time', (facts) => sumNames(facts, view, step, names)],
    ['readApplication', (facts) => facts.readApplication({ ...view, ...key })],
    ['listPairs', (facts) => facts.listPairs(view, limit)],
    ['sumDevices', (facts) => facts.sumDevices(range, sampleKeys)],
    ['stepDevice', (facts) => facts.stepDevice({ ...range, deviceKey, stepSeconds: step })],
    ['listPeerNetworks', (facts) => facts.listPeerNetworks(address, limit)],
    ['findPeers', (facts) => facts.findPeers({ ...range, prefix }, limit)],
  ];
}

/** What a chart of applications asks. */
async function sumNames(
  facts: FactStore,
  { direction, ...range }: ViewRange,
  stepSeconds: number,
  values: readonly string[],
) {
  const ofView: ExploredFilter[] =
    direction === null ? [] : [{ dimension: 'direction', is: true, values: [direction] }];
  const { rows, steps } = await facts.explore({
    ...{ ...range, source: 'applications', owners: [], networks: [], measure: 'bytes' },
    filters: [...ofView, { dimension: 'application', is: true, values }],
    ...{ by: ['application'], stepSeconds, order: 'size', rows: { limit: values.length } },
  });
  return { rows, steps };
}

/** Engines number captures as they please; answers name them by sensor and interface. */
async function nameCaptures(facts: FactStore, origins: readonly FactOrigin[]): Promise<Map<number, string>> {
  const names = new Map<number, string>();
  for (const siteId of new Set(origins.map((one) => one.siteId)))
    for (const one of await facts.listCaptures(siteId, 0))
      names.set(one.captureId, `${one.sensorId} ${one.name}`);
  return names;
}

async function answer(
  facts: FactStore,
  range: SiteRange,
  ask: Ask,
  names: ReadonlyMap<number, string>,
): Promise<unknown> {
  const said = await ask(facts, range.siteId);
  return sortNamed(
    JSON.parse(
      JSON.stringify(said ?? null, (field, value) => {
        if (field === 'captureId') return names.get(value);
        if (field === 'knownCaptures') return (value as number[]).map((id) => names.get(id)).sort();
        return value;
      }),
    ),
  );
}

/** Lists that are ordered by captures' numbers. */
function sortNamed(said: unknown): unknown {
  if (Array.isArray(said)) return said.map(sortNamed);
  for (const field of ['seen', 'listening', 'gaps']) {
    const list = (said as Record<string, unknown> | null)?.[field];
    if (Array.isArray(list)) list.sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
  }
  return said;
}

const textOf = (row: object) => JSON.stringify(Object.entries(row).sort());

function difference(told: unknown, expected: unknown): string {
  const [a, b] = [JSON.stringify(told), JSON.stringify(expected)];
  let at = 0;
  while (a[at] === b[at] && at < a.length) at += 1;
  const from = Math.max(0, at - 60);
  return `…${a.slice(from, at + 160)} instead of …${b.slice(from, at + 160)}`;
}
