/** `./svc monitor move-facts` and `delete-facts`: the facts of a running installation from one engine to the other. */
import { CodedError } from '#common/errors/index.ts';
import { startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import { cancelMove, deleteFacts, type FactsSide, moveBetween, parseFactsUrl } from '../facts/index.ts';

/** Reads `postgres` or a URL; `option` names where it was given. Throws what is wrong, without the URL. */
export function parseFactsSide(text: string, option: string): FactsSide {
  if (text === 'postgres' || text === 'postgresql') return null;
  try {
    return parseFactsUrl(text);
  } catch (error) {
    throw new CodedError(
      'command.invalid',
      `${option} ${(error as Error).message}, or the word postgres for the monitor's database.`,
    );
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`);

/** Runs until the switch, or until the first Ctrl-C. */
export async function moveFacts(environment: NodeJS.ProcessEnv, to: string): Promise<number> {
  const side = parseFactsSide(to, '--to');
  const config = readConfig(environment);
  const { database, factEngine, inbox, db, clock, reporter } = compose(config, { embedded: 'existing' });
  const stopping = new AbortController();
  const stop = await startParts([database, factEngine.part], reporter);
  const onSignal = () => {
    if (stopping.signal.aborted) process.exit(130);
    say('Stopping after the present piece; Ctrl-C again stops at once.');
    stopping.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  try {
    const hold = { ...inbox.hold, drain: () => inbox.drain() };
    await moveBetween({ db, clock, from: config.factsPlace, to: side, hold, say, signal: stopping.signal });
    say(describeSwitch(side));
    return 0;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal);
    await stop();
  }
}

function describeSwitch(to: FactsSide): string {
  const setting =
    to === null
      ? 'Remove SVC_FACTS_URL from the settings of every service of the monitor'
      : 'Set SVC_FACTS_URL to the URL of --to on every service of the monitor';
  const old = to === null ? 'the URL of ClickHouse' : 'postgres';
  return [
    `${setting}, and restart them. Until then uploads wait; nothing is lost.`,
    `The source still holds its copy. When the pages show what you expect, delete it: ./svc monitor delete-facts --from ${to === null ? 'clickhouse://…' : old}`,
  ].join('\n');
}

/** Gives a move up. */
export async function cancelFactMove(environment: NodeJS.ProcessEnv): Promise<number> {
  const { database, db, clock, reporter } = compose(readConfig(environment), { embedded: 'existing' });
  const stop = await startParts([database], reporter);
  try {
    const had = await cancelMove(db, clock);
    say(
      had
        ? 'The move is given up. What it copied is still in its target: ./svc monitor delete-facts --help.'
        : 'No move is under way.',
    );
    return 0;
  } finally {
    await stop();
  }
}

/** Deletes the facts of an engine that is not in use. */
export async function deleteOtherFacts(environment: NodeJS.ProcessEnv, from: string): Promise<number> {
  const side = parseFactsSide(from, '--from');
  const { database, db, reporter } = compose(readConfig(environment), { embedded: 'existing' });
  const stop = await startParts([database], reporter);
  try {
    say((await deleteFacts(db, side)) ? 'Deleted.' : 'There are no facts.');
    return 0;
  } finally {
    await stop();
  }
}
