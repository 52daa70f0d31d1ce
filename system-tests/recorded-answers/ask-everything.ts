/**
 * Asks both programs for everything that can be read: each GET route of the running servers as those who may call it. Paths
 * come from the links of other answers, of each route the first ones and one for each of its parameters; a route that nothing
 * links to is asked with the id 1.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { type Replacements, reduceAnswer, reduceText } from './reduce-answer.ts';
import { metricsToken, type RecordedWorld } from './world.ts';

/** Who asks, and which routes. */
interface Caller {
  name: string;
  url: string;
  routes: readonly string[];
  headers: Readonly<Record<string, string>>;
  /** An API's answers have no links: its routes are asked with these ids. */
  ids?: readonly string[];
}

/** Answers by `caller path`. */
export type Answers = Map<string, string>;

/** Paths of one route that are asked because another answer links to them. */
const pathsMax = 3;
/** What the explorers are asked beside what pages lead to; the same text in each of them. */
const filters = [
  'app:DNS',
  'peer:198.51.100.0/24 -port:22',
  'port:443 direction:in',
  'server:web port:udp/53',
  '192.0.2.10',
  'nothing:known',
];
const exploringRoutes =
  /^(\/sites\/1\/explore|\/client\/traffic\/|\/client\/servers\/\d+\/traffic|\/console\/traffic\/|\/api\/v1\/query|.*\/complete)$/;
/** What answers a count of calls, or what is left of them. */
const counting = /^\/api\/.*\/(account|usage|key)$/;
/** A download of evidence leaves an entry in the audit trail, which is asked for too. */
const notRecorded = /^\/(assets|healthz|readyz)\b|\/evidence\/.*\/download$/;

async function listCallers(world: RecordedWorld): Promise<Caller[]> {
  const { operations, monitor, keys, north, south } = world;
  const caller = (
    [name, of]: [string, { url: string; routes: readonly { method: string; url: string }[] }],
    headers: Caller['headers'],
    isOwn: (route: string) => boolean,
    ids?: readonly string[],
  ): Caller => {
    const gets = of.routes.filter(
      ({ method, url }) => method === 'GET' && !notRecorded.test(url) && isOwn(url),
    );
    return { name, url: of.url, routes: gets.map(({ url }) => url), headers, ...(ids && { ids }) };
  };
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const visitor = async (email: string) => {
    const cookie = await operations.signIn(email);
    // Mails about new browsers in the order of the sign-ins.
    await operations.post.idle();
    return { accept: 'text/html', cookie };
  };
  const under = (pattern: RegExp) => (route: string) => pattern.test(route);
  const program = /^\/(api|agent|metrics)\b/;
  const forStaff = /^\/(console|find|sign-on|dev)\b/;
  const customers = /^\/client\b/;
  const ofPeople = (route: string) => ![program, forStaff, customers].some((one) => one.test(route));
  const { cookie } = await monitor.signIn('operator');
  const site = /^\/(api\/v1\/(query|dimensions|openapi|sites\/:siteId\/metrics)|agent|metrics)/;
  const first = ['1', '2', '3', '4', '5'];
  return [
    caller(['portal of Northwind', operations], await visitor(north.email), under(customers)),
    caller(
      ['portal of Southgate', operations],
      await visitor(south.email),
      under(/^\/client\b(?!.*\/docs\/)/),
    ),
    caller(['console', operations], await visitor(world.operatorEmail), under(forStaff)),
    caller(['anyone', operations], { accept: 'text/html' }, ofPeople),
    caller(['monitor', monitor], { accept: 'text/html', cookie }, (route) => !site.test(route)),
    caller(
      ['read API', monitor],
      bearer(world.readToken),
      under(/^\/api\/v1\/(query|dimensions|openapi|sites)/),
      ['1'],
    ),
    caller(['sensor', monitor], bearer(world.sensor.credential), under(/^\/agent\b/)),
    caller(['customer API, Northwind', operations], bearer(keys.north), under(/^\/api\/v\d\b/), first),
    caller(['customer API, Southgate', operations], bearer(keys.south), under(/^\/api\/v\d\b/), first),
    caller(['admin API', operations], bearer(world.adminToken), under(/^\/api\/admin\b/)),
    ...[operations, monitor].map((of, at) =>
      caller([`metrics ${at + 1}`, of], bearer(metricsToken), under(/^\/metrics$/)),
    ),
  ];
}

function replacementsOf({ operations, monitor, receiverUrl }: RecordedWorld): Replacements {
  const portsOf = [operations.url, monitor.url, receiverUrl].map((url) => new URL(url).host);
  return [
    ...portsOf.map((host, at) => [host, `program-${at + 1}`] as const),
    [/\breq_[0-9A-Z]{26}\b/g, 'req_…'],
    // Of leases, and of files that all pages share.
    [new RegExp(`\\b${process.pid}-[0-9a-f]{8}\\b`, 'g'), 'process'],
    // How long something took, and what the database's files take.
    [/took (less than a second|\d+ s)/g, 'took …'],
    [/("last_seconds": )[\d.]+/g, '$1…'],
    [/\b[\d.]+ MB(?=on its disk|\.$)/gm, '… MB'],
    [/\/assets\/\w+\//g, '/assets/…/'],
  ];
}

/** `known` are paths to be asked in this order; other links of their answers after them. */
export async function askEverything(world: RecordedWorld, known: readonly string[] = []): Promise<Answers> {
  const answers: Answers = new Map();
  const replacements = replacementsOf(world);
  for (const caller of await listCallers(world)) {
    const own = known
      .filter((one) => one.startsWith(`${caller.name} /`))
      .map((one) => one.slice(caller.name.length + 1));
    await askAs(caller, own, replacements, answers);
  }
  for (const [name, text] of await listCommands()) answers.set(name, reduceText(text, replacements));
  return answers;
}

async function askAs(
  caller: Caller,
  known: readonly string[],
  replacements: Replacements,
  answers: Answers,
): Promise<void> {
  const patterns = caller.routes.map((route) => ({ route, pattern: patternOf(route) }));
  const routeOf = (path: string) => patterns.find(({ pattern }) => pattern.test(path.split('?')[0]!))?.route;
  const seen = new Set<string>();
  const paths = new Map<string, Set<string>>();
  const waiting: string[] = [];
  const add = (path: string, isKnown = false) => {
    const route = routeOf(path);
    if (route === undefined || waiting.includes(path)) return;
    const kinds = kindsOf(route, path);
    const asked = paths.get(route) ?? new Set();
    const name = path.split('?')[0]!;
    const isNew = kinds.some((kind) => !seen.has(kind)) || (!asked.has(name) && asked.size < pathsMax);
    if (!isNew && !isKnown) return;
    for (const kind of kinds) seen.add(kind);
    paths.set(route, asked.add(name));
    waiting.push(path);
  };
  // These first, and in one order.
  for (const route of caller.routes.filter((one) => counting.test(one)).sort()) add(route);
  for (const path of known) add(path, true);
  for (const { route } of patterns)
    for (const id of route.includes(':') ? (caller.ids ?? []) : ['']) add(route.replace(/:\w+/g, id));
  for (let at = 0; ; at += 1) {
    // What nothing has led to is asked last.
    if (at === waiting.length)
      for (const { route } of patterns) if (!paths.has(route)) add(route.replace(/:\w+/g, '1'));
    const path = waiting[at];
    if (path === undefined) return;
    const answer = await fetch(caller.url + path, { headers: caller.headers, redirect: 'manual' });
    const text = await answer.clone().text();
    answers.set(`${caller.name} ${path}`, await reduceAnswer(answer, replacements));
    for (const link of linksIn(text)) add(link);
    if (exploringRoutes.test(path))
      for (const filter of filters) add(`${path}?q=${encodeURIComponent(filter)}`);
  }
}

const patternOf = (route: string) =>
  new RegExp(`^${route.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/:\w+/g, '[^/]+')}$`);

/** The route, and each of its parameters; those that choose a view or a file by their value too. */
function kindsOf(route: string, path: string): string[] {
  const { searchParams } = new URL(path, 'http://any');
  const chosen = [...searchParams].map(([name, value]) => {
    return `${route} ${name}${filters.includes(value) || /^(format|table|tab|view|group|by|kind|measure|shape|top|compare)$/.test(name) ? `=${value}` : ''}`;
  });
  const file = searchParams.has('format')
    ? [`${route} ${searchParams.get('format')} ${searchParams.get('table')}`]
    : [];
  return [route, ...chosen, ...file];
}

/** Links, and what forms that only ask lead to: each choice once, and the example that a text field shows. */
function linksIn(text: string): string[] {
  const links = [...text.matchAll(/="(\/[^"#]*)/g)].map(([, link = '']) => link);
  const forms = text.matchAll(/<form[^>]* method="get" action="([^"]+)"[^>]*>(.*?)<\/form>/gs);
  for (const [, action = '', fields = ''] of forms) {
    for (const [, name, choices = ''] of fields.matchAll(/<select[^>]* name="(\w+)"[^>]*>(.*?)<\/select>/gs))
      for (const [, value] of choices.matchAll(/<option value="([^"]+)"/g))
        links.push(`${action}?${name}=${value}`);
    for (const [field] of fields.matchAll(/<input[^>]* type="search"[^>]*>/g)) {
      const [name, example] = ['name', 'placeholder'].map(
        (one) => new RegExp(` ${one}="([^"]*)"`).exec(field)?.[1],
      );
      if (name && example) links.push(`${action}?${name}=${encodeURIComponent(example)}`);
    }
  }
  return links.map((link) => link.replaceAll('&amp;', '&'));
}

/** What commands say: the help of each, and what the sensor's read in a capture file. */
async function listCommands(): Promise<Answers> {
  const said: Answers = new Map();
  for (const [program, load] of Object.entries(programs)) {
    const command = new Command(program);
    (await load()).addCommands(command);
    for (const one of [command, ...command.commands])
      said.set(`command ${program} ${one === command ? '' : `${one.name()} `}--help`, one.helpInformation());
  }
  for (const options of ['read', 'read --json', 'detect', 'detect --json']) {
    const args = ['svc.ts', 'sensor', ...options.split(' '), 'demo/recording.pcap'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
    said.set(`command sensor ${options} FILE`, stdout);
  }
  return said;
}

const programs = {
  operations: () => import('#operations/main.ts'),
  monitor: () => import('#monitor/main.ts'),
  sensor: () => import('#sensor/main.ts'),
};
