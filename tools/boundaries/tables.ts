/**
 * Who may name which table in SQL. A table belongs to the one feature whose store files name it; other features reach its
 * rows through that feature's `index.ts`, or through a read model.
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
  owner: 'SQL of one feature names a table',
  unused: 'every table is named by a feature',
  readModel: 'a read model only reads',
} as const;

const isReadModel = (path: string) =>
  /^\w+\/(surfaces\/.*\/read-[a-z-]+-store|views\/(.*\/)?([a-z-]+-)?store)\.ts$/.test(path);

export function checkTables(modules: readonly Module[], migrations: readonly Migration[]): Offence[] {
  const stores = modules.filter(({ place }) => !place.isTest && !isReadModel(place.path));
  const offences = modules
    .filter(({ place }) => !place.isTest && isReadModel(place.path))
    .flatMap((module) => writesOf(module));
  for (const top of ['service-kit', ...programs]) {
    const tables = tablesOfMigrations(migrations.filter((one) => one.top === top).map(({ text }) => text));
    // The tables of service-kit are in the database of every program.
    const tops: readonly string[] = top === 'service-kit' ? ['service-kit', ...programs] : [top];
    const own = stores.filter(({ place }) => tops.includes(place.top));
    const users = usersOf(own, tables);
    for (const table of tables) {
      const uses = [...(users.get(table) ?? [])];
      // A statement may put the name together; a list of its feature has it whole.
      if (uses.length === 0 && !own.some(({ storeTexts }) => storeTexts.includes(table)))
        offences.push({ rule: tableRules.unused, file: `${top}/migrations`, what: `no SQL names ${table}` });
      if (uses.length < 2) continue;
      for (const [unit, { file, text }] of uses) {
        const others = uses.map(([other]) => other).filter((other) => other !== unit);
        const what = `names ${table}, as ${others.join(' and ')} does: ${text}`;
        offences.push({ rule: tableRules.owner, file, what });
      }
    }
  }
  return offences;
}

const unitOf = ({ place }: Module) => `${place.top}/${place.unit ?? place.inside.split('/')[0]}`;

/** Table → the features that name it, each with its first use. */
function usersOf(modules: readonly Module[], tables: ReadonlySet<string>) {
  const users = new Map<string, Map<string, { file: string; text: string }>>();
  for (const module of modules)
    for (const { table, text } of usesOf(module, tables)) {
      const units = users.get(table) ?? new Map();
      users.set(
        table,
        units.set(unitOf(module), units.get(unitOf(module)) ?? { file: module.place.path, text }),
      );
    }
  return users;
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
