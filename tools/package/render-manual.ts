/** A program's manual page: its text of `packaging/`, and its settings out of its own definitions. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PackagedProgram } from './programs.ts';

/** The page as roff. */
export async function renderManual(
  program: PackagedProgram,
  { root, version, epochSeconds }: { root: string; version: string; epochSeconds: number },
): Promise<string> {
  const { name, summary } = program;
  const { section } = program.manual;
  const date = new Date(epochSeconds * 1000).toISOString().slice(0, 10);
  const head = [
    `.TH ${name.toUpperCase()} ${section} "${date}" "svc ${version}" "svc"`,
    '.SH NAME',
    `${escapeRoff(name)} \\- ${escapeRoff(summary)}`,
  ];
  const text = readFileSync(join(root, 'packaging', name, `manual.${section}`), 'utf8').trimEnd();
  const settings = (await program.manual.settings()).flatMap((setting) => {
    const unit = setting.unit ? ` Unit: ${setting.unit}.` : '';
    return [
      '.TP',
      `.B ${escapeRoff(setting.name)}`,
      escapeRoff(`${setting.sentence}${unit} Default: ${setting.defaultText}.`),
    ];
  });
  return `${[...head, text, ...settings].join('\n')}\n`;
}

function escapeRoff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
}
