/** The rules of the import law. Each says what is wrong with one module; `boundaries.test.ts` plants an offender for each. */
import { isStore, type Module, type Offence, programs } from './module.ts';

export interface Rule {
  name: string;
  faults(module: Module): string[];
}

const isProgram = (top: string) => (programs as readonly string[]).includes(top);
/** Statements that any feature and surface may use: who calls one passes the scope of the actor. */
const readModels = 'views';
const isNode = (text: string) => text.startsWith('node:');

/** Makes a rule out of a predicate over the imports of the modules that `applies` picks. */
function importRule(
  name: string,
  applies: (module: Module) => boolean,
  isFault: (module: Module, entry: Module['imports'][number]) => boolean,
): Rule {
  return {
    name,
    faults: (module) =>
      applies(module)
        ? module.imports.filter((entry) => isFault(module, entry)).map((entry) => `imports ${entry.text}`)
        : [],
  };
}

export const rules: readonly Rule[] = [
  importRule(
    'a program imports no other program',
    (module) => isProgram(module.place.top),
    (module, { target }) => target !== null && isProgram(target.top) && target.top !== module.place.top,
  ),
  importRule(
    'a feature reaches a sibling only through its index.ts',
    (module) => module.place.kind === 'feature' && !module.place.isTest,
    (module, { target }) =>
      target?.top === module.place.top &&
      target.kind === 'feature' &&
      target.unit !== module.place.unit &&
      target.unit !== readModels &&
      target.inside !== 'index.ts',
  ),
  importRule(
    'a feature imports no surface, command or main file',
    (module) => module.place.kind === 'feature' && !module.place.isTest,
    (module, { target }) =>
      target?.top === module.place.top &&
      (target.kind === 'surface' ||
        target.kind === 'commands' ||
        (target.kind === 'root' && target.inside === 'main.ts')),
  ),
  importRule(
    'a surface imports no other surface',
    (module) => module.place.kind === 'surface' && !module.place.isTest,
    (module, { target }) =>
      target?.top === module.place.top &&
      target.kind === 'surface' &&
      target.unit !== module.place.unit &&
      // What several surfaces draw alike.
      !(target.unit === 'surfaces/parts' && target.inside === 'index.ts'),
  ),
  importRule(
    'a surface reaches a feature only through its index.ts',
    (module) => module.place.kind === 'surface' && !module.place.isTest,
    (module, { target }) =>
      target?.top === module.place.top &&
      target.kind === 'feature' &&
      target.unit !== readModels &&
      target.inside !== 'index.ts',
  ),
  {
    name: 'SQL stands only in store files and migrations',
    faults: (module) => {
      const { place } = module;
      if (!isProgram(place.top) || place.isTest || place.top === 'sensor' || isStore(place.path)) return [];
      const imported = module.imports.filter(
        (entry) => entry.text === 'kysely' && entry.names.includes('sql'),
      );
      return [
        ...imported.map(() => 'imports sql of kysely'),
        ...module.sqlTexts.map((text) => `holds SQL: ${text}`),
        ...module.builderTables.map((table) => `makes a statement on ${table}`),
      ];
    },
  },
  importRule(
    'the sensor imports only common and contracts',
    (module) => module.place.top === 'sensor' && !module.place.isTest,
    (_module, { target }) => target !== null && !['sensor', 'common', 'contracts'].includes(target.top),
  ),
  importRule(
    'sensor/capture imports common/bytes only',
    (module) => module.place.top === 'sensor' && module.place.unit === 'capture' && !module.place.isTest,
    (_module, { target, text }) =>
      target === null ? !isNode(text) : target.unit !== 'capture' && !target.path.startsWith('common/bytes/'),
  ),
  importRule(
    'common, contracts and service-kit import no program',
    (module) => ['common', 'contracts', 'service-kit'].includes(module.place.top),
    (_module, { target }) => target !== null && isProgram(target.top),
  ),
  importRule(
    'common imports nothing but itself and Node',
    (module) => module.place.top === 'common' && !module.place.isTest,
    (_module, { target, text }) => (target === null ? !isNode(text) : target.top !== 'common'),
  ),
  importRule(
    'contracts import only common and schema libraries',
    (module) => module.place.top === 'contracts' && !module.place.isTest,
    (_module, { target, text }) =>
      target === null
        ? !isNode(text) && !/^(typebox|@bufbuild\/protobuf)(\/|$)/.test(text)
        : !['contracts', 'common'].includes(target.top),
  ),
  importRule(
    'no program imports lab, demo, tools or system-tests',
    (module) =>
      isProgram(module.place.top) || ['common', 'contracts', 'service-kit'].includes(module.place.top),
    (_module, { target }) => target !== null && ['lab', 'demo', 'tools', 'system-tests'].includes(target.top),
  ),
  importRule(
    'no program imports what is made for tests',
    (module) =>
      (isProgram(module.place.top) || ['common', 'contracts', 'service-kit'].includes(module.place.top)) &&
      !module.place.isTest,
    (_module, { target }) => target?.isTest === true,
  ),
  importRule(
    'clients import nothing but themselves',
    (module) => module.place.top === 'clients' && !module.place.isTest,
    // The library runs in browsers as well; the others need Node.js.
    ({ place }, { target, text }) =>
      target?.top !== 'clients' && (place.path.startsWith('clients/typescript/') || !isNode(text)),
  ),
  importRule(
    'lab and demo know the programs from outside only',
    (module) => ['lab', 'demo'].includes(module.place.top) && !module.place.isTest,
    (_module, { target }) => target !== null && isProgram(target.top),
  ),
];

/** Features that import one another in a circle, types included: a circle of types is a circle of thoughts. */
export function checkCycles(modules: readonly Module[]): Offence[] {
  const edges = new Map<string, Set<string>>();
  for (const { place, imports } of modules) {
    if (place.kind !== 'feature' || place.isTest) continue;
    const from = `${place.top}/${place.unit}`;
    for (const { target } of imports) {
      if (target?.kind !== 'feature' || target.top !== place.top || target.unit === place.unit) continue;
      const to = `${target.top}/${target.unit}`;
      edges.set(from, (edges.get(from) ?? new Set()).add(to));
    }
  }
  const offences: Offence[] = [];
  const done = new Set<string>();
  const walk = (node: string, path: string[]): void => {
    const at = path.indexOf(node);
    if (at >= 0) {
      offences.push({
        rule: 'features form no cycle',
        file: node,
        what: [...path.slice(at), node].join(' → '),
      });
      return;
    }
    if (done.has(node)) return;
    for (const next of edges.get(node) ?? []) walk(next, [...path, node]);
    done.add(node);
  };
  for (const node of edges.keys()) walk(node, []);
  return offences;
}
