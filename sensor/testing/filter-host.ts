/**
 * A hypervisor's side of a filtered link: a TLS server that echoes, behind the filter of an interface of this network namespace. Takes lines on
 * standard input, and answers each with one of JSON. Needs root.
 *
 * rules CLASS,…   drops these attacks on 192.0.2.7 from now on (CLASS:count counts what it would drop)
 * silence         the last sign of life is ten seconds ago
 * counts          what the rules did since the last time
 *
 * usage: filter-host.ts INTERFACE PORT
 */
import { execFileSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createServer } from 'node:tls';
import { preparePins } from '#sensor/kernel/attachment.ts';
import { attachFilter, openFilter, removeFilters } from '#sensor/kernel/filter.ts';
import { victim } from './attack-traffic.ts';
import { rulesAgainst } from './filter-runs.ts';

const [name, port] = process.argv.slice(2);
preparePins([name!], { uid: 0, gid: 0 });
attachFilter(name!);
const attached = openFilter(name!);
const { filter } = attached;
const heart = setInterval(() => filter.beat(), 1000);
// The key is in front of its certificate.
const ofCurve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
const made = ['-x509', '-subj', '/CN=server', '-days', '1', '-keyout', '-'];
const pem = execFileSync('openssl', ['req', ...ofCurve, ...made], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
});
const server = createServer({ key: pem, cert: pem }, (socket) =>
  socket.on('error', () => socket.destroy()).pipe(socket),
);
await new Promise<void>((resolve) => server.listen(Number(port), resolve));

const answers: Readonly<Record<string, (words: string[]) => unknown>> = {
  rules: ([list = '']) => {
    const rules = list.split(',').flatMap((word) => {
      const [of, mode] = word.split(':');
      return rulesAgainst(victim(4), { class: of!, ports: [] }, mode === 'count' ? { dropsAtMs: null } : {});
    });
    return { leftOut: filter.setRules(rules).length };
  },
  silence: () => {
    clearInterval(heart);
    filter.beat(process.hrtime.bigint() - 10_100_000_000n);
    return {};
  },
  counts: () => Object.fromEntries(filter.takeCounts().map(({ rule, counts }) => [rule.class, counts])),
};
process.stdout.write('{}\n');
for await (const line of createInterface(process.stdin)) {
  const [word, ...rest] = line.split(' ');
  process.stdout.write(`${JSON.stringify(answers[word!]!(rest))}\n`);
}
const removed = removeFilters([name!]);
process.stdout.write(`${JSON.stringify({ removed: removed.length, isAttached: attached.isAttached() })}\n`);
process.exit(0);
