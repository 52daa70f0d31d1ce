/**
 * Roles of a program's processes: `serve` does everything, `serve --only web,jobs` does a part of it.
 *
 * Any number of processes of each role may run on one database. Together they have to have every role.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';

/** Each role of a program with what it does, as a phrase. */
export type RoleWords<Role extends string> = Readonly<Record<Role, string>>;

/** Every role of the program. */
export function allRoles<Role extends string>(words: RoleWords<Role>): ReadonlySet<Role> {
  return new Set(Object.keys(words) as Role[]);
}

/** The roles in a list such as `web,jobs`. Throws a sentence that names all roles for one that does not exist. */
export function parseRoles<Role extends string>(text: string, words: RoleWords<Role>): ReadonlySet<Role> {
  const known = Object.keys(words) as Role[];
  const asked = text.split(',').map((name) => name.trim());
  for (const name of asked)
    if (!known.includes(name as Role))
      throw new InvalidArgumentError(`There is no role "${name}". The roles are ${known.join(', ')}.`);
  return new Set(asked as Role[]);
}

/** Adds `--only` to a `serve` command, with its help. The option's value is a set of roles; without it there is none. */
export function addRoleOption<Role extends string>(command: Command, words: RoleWords<Role>): Command {
  const width = Math.max(...Object.keys(words).map((name) => name.length)) + 2;
  const lines = Object.entries<string>(words).map(([name, does]) => `  ${name.padEnd(width)}${does}`);
  return command
    .addOption(
      new Option('--only <roles>', 'do only this, such as web or web,loops; everything without it').argParser(
        (text: string) => parseRoles(text, words),
      ),
    )
    .addHelpText('after', `\nRoles, for more than one process on one database:\n${lines.join('\n')}`);
}
