/**
 * Writes docs/settings.md from the programs' own definitions.
 *
 * usage: sh tools/with-node tools/settings-reference.ts
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Setting } from '#common/config/index.ts';
import { type KeptData, keptText, keptWhat, retentionSettings } from '#contracts/retention.ts';
import { demoSettings } from '#demo/config.ts';
import { labSettings } from '#lab/config.ts';
import { monitorSettings } from '#monitor/config.ts';
import { installedFeeds, settingsOfFeeds } from '#monitor/feeds/index.ts';
import { operationsSettings } from '#operations/config.ts';
import { sensorSettings } from '#sensor/config.ts';

const file = fileURLToPath(new URL('../docs/settings.md', import.meta.url));

const programs: [string, Record<string, Setting<unknown>>][] = [
  ['operations', operationsSettings],
  ['monitor', { ...monitorSettings, ...settingsOfFeeds(installedFeeds) }],
  ['sensor', sensorSettings],
  ['lab', labSettings],
  ['demo', demoSettings],
];

function renderReference(): string {
  const lines = [
    '# Settings',
    '',
    'Every setting is an environment variable. This page is made from the programs (`tools/settings-reference.ts`).',
    'Instead of `NAME`, `NAME_FILE` may name a file with the value, such as a secret that is mounted into a container.',
  ];
  const lengthened: Partial<Record<KeptData, string>> = {
    ...{ traffic: retentionSettings.trafficMonths.name, bindings: retentionSettings.trafficMonths.name },
    attacks: retentionSettings.incidentYears.name,
  };
  lines.push('', '## Retention', '', '| Data | Kept for | Longer by |', '|---|---|---|');
  for (const [data, what] of Object.entries(keptWhat) as [KeptData, string][])
    lines.push(`| ${what} | ${keptText(data)} | ${lengthened[data] ? `\`${lengthened[data]}\`` : '–'} |`);
  for (const [program, settings] of programs) {
    lines.push('', `## ${program}`, '', '| Setting | Default | Meaning |', '|---|---|---|');
    // Feeds of one loop share their settings.
    for (const setting of [...new Set(Object.values(settings))].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const unit = setting.unit ? ` Unit: ${setting.unit}.` : '';
      const cells = [`\`${setting.name}\``, setting.defaultText, `${setting.sentence}${unit}`];
      lines.push(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** What is wrong with docs/settings.md; null if it is current. */
export function checkReference(): string | null {
  // A missing file is as stale as an old one.
  const current = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return current === renderReference()
    ? null
    : 'docs/settings.md is out of date; make it anew: sh tools/with-node tools/settings-reference.ts';
}

if (import.meta.main) writeFileSync(file, renderReference());
