/**
 * Who may name which table in SQL. Every table has one owner, a folder whose `tables.ts` lists it; other features reach its
 * rows through the owner's `index.ts`, or through a read model.
 *
 * A read model (`surfaces/…/read-…-store.ts`, `<program>/views/…-store.ts`) may join the tables of any feature, and only
 * reads. Migrations are exempt: foreign keys and cascades go across features.
 */
import { changesRows, findTableUses, tablesOfMigrations } from './find-tables.ts';
import { type Module, type Offence, programs } from './module.ts';

export interface Migration {
  /** The folder that it belongs to: a program or `service-kit`. */
  top: string;
  text: string;
}

export const tableRules = {
  owner: 'every table has one owner',
  foreign: 'SQL names tables of its own feature',
  readModel: 'a read model only reads',
} as const;

const isReadModel = (path: string) =>
  /^\w+\/(surfaces\/.*\/read-[a-z-]+-store|views\/(.*\/)?([a-z-]+-)?store)\.ts$/.test(path);

export function checkTables(modules: readonly Module[], migrations: readonly Migration[]): Offence[] {
  const offences: Offence[] = [];
  const kit = ownersOf('service-kit', modules, migrations, offences);
  for (const program of programs) {
    const owners = new Map([...kit, ...ownersOf(program, modules, migrations, offences)]);
    const tables = new Set(owners.keys());
    for (const module of modules) {
      const { path, top, isTest } = module.place;
      if (top !== program || isTest) continue;
      if (isReadModel(path)) {
        offences.push(...writesOf(module));
        continue;
      }
      const own = unitOf(module);
      for (const { table, text } of usesOf(module, tables)) {
        const owner = owners.get(table)!;
        if (owner === own) continue;
        offences.push({ rule: tableRules.foreign, file: path, what: `names ${table} of ${owner}: ${text}` });
      }
    }
  }
  return offences;
}

const unitOf = (module: Module) =>
  module.place.top === 'service-kit'
    ? `service-kit/${module.place.inside.split('/')[0]}`
    : `${module.place.unit}`;

/** Table → the folder that declares it. Tables without an owner, with two, or that do not exist are offences. */
function ownersOf(
  top: string,
  modules: readonly Module[],
  migrations: readonly Migration[],
  offences: Offence[],
): Map<string, string> {
  const existing = tablesOfMigrations(migrations.filter((one) => one.top === top).map(({ text }) => text));
  const owners = new Map<string, string>();
  const refuse = (file: string, what: string) => offences.push({ rule: tableRules.owner, file, what });
  for (const module of modules) {
    if (module.place.top !== top) continue;
    for (const table of module.declaredTables) {
      if (owners.has(table)) refuse(module.place.path, `${table} belongs to ${owners.get(table)} already`);
      else if (!existing.has(table)) refuse(module.place.path, `no migration makes ${table}`);
      owners.set(table, unitOf(module));
    }
  }
  for (const table of existing)
    if (!owners.has(table))
      refuse(`${top}/migrations`, `${table} has no owner: name it in a feature's tables.ts`);
  return owners;
}

function usesOf(module: Module, tables: ReadonlySet<string>) {
  return [
    ...module.storeTexts.flatMap((text) => findTableUses(text, tables)),
    ...module.builderTables
      .filter((table) => tables.has(table))
      .map((table) => ({ table, text: `a call with '${table}'` })),
  ];
}

function writesOf(module: Module): Offence[] {
  return module.storeTexts.filter(changesRows).map((text) => ({
    rule: tableRules.readModel,
    file: module.place.path,
    what: `changes or locks rows: ${text.trim().split('\n')[0]!.slice(0, 60)}`,
  }));
}
