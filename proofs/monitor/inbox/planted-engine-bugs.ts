/**
 * Loaded before a worker (`node --import`): changes the text of the module that settles what arrived, so that what is in doubt is always
 * taken for stored, or always for lost. Fails where the text to be changed is not found.
 */
import { registerHooks } from 'node:module';

export type EngineBug = 'taken_for_stored' | 'taken_for_lost';

const file = 'monitor/facts/clickhouse/arrival-store.ts';
const from = 'return found!.marks === 0;';
const to: Record<EngineBug, string> = { taken_for_stored: 'return true;', taken_for_lost: 'return false;' };

const bug = process.env.SVC_PROOF_ENGINE_BUG as EngineBug | undefined;
if (bug !== undefined)
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.endsWith(`/${file}`)) return loaded;
      const text = String(loaded.source);
      if (!text.includes(from)) throw new Error(`${file} has no "${from}"`);
      return { ...loaded, source: text.replace(from, to[bug]) };
    },
  });
