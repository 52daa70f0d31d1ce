/** Holds the exchanges of its one JSON argument and prints what each brought; tests run it inside a guest. */
import { readFileSync } from 'node:fs';
import { type Exchange, holdExchange } from '../traffic/exchanges.ts';

const input = JSON.parse(process.argv[2]!) as { certificate: string; exchanges: Exchange[] };
const certificate = readFileSync(input.certificate, 'utf8');
const results: (number | string)[] = [];
for (const exchange of input.exchanges) {
  const bytes = holdExchange({ ...exchange, certificate }, AbortSignal.timeout(60_000));
  results.push(await bytes.catch((error: Error) => error.message));
}
process.stdout.write(JSON.stringify(results));
