/** Ways to break what the monitor says of potential vulnerabilities (NET-2.6, NET-2.7.11, 4.d). */
import type { Mutation } from './mutation.ts';

const assessor = ['monitor/vulnerabilities/assessing/assessor.test.ts'];
const ignores = ['monitor/vulnerabilities/ignores/ignores.test.ts'];
const feed = ['monitor/feeds/vulnerabilities/vulnerability-feed.test.ts'];

export const mutationsOfAssessments: readonly Mutation[] = [
  {
    rule: 'NET-2.6.1',
    what: 'ignored findings are counted among the active ones',
    file: 'monitor/vulnerabilities/assessing/server-store.ts',
    find: '- coalesce(${sql.ref(`i.${rating}`)}, 0)',
    replace: '+ 0 * coalesce(${sql.ref(`i.${rating}`)}, 0)',
    tests: ignores,
  },
  {
    rule: 'NET-2.6.2',
    what: 'a package of a distribution says nothing of unmarked services beside it',
    file: 'monitor/vulnerabilities/assessing/bind-services.ts',
    find: 'identified.some(({ isMarked }) => isMarked)',
    replace: 'identified.every(({ isMarked }) => isMarked)',
    tests: assessor,
  },
  {
    rule: 'NET-2.6.3',
    what: 'a service is assessed although the records of its product were never fetched',
    file: 'monitor/vulnerabilities/assessing/server-store.ts',
    find: "case when w.database_at is null then 'no_database' end",
    replace: 'case when w.database_at is null then v.reason end',
    tests: assessor,
  },
  {
    rule: 'NET-2.6.4',
    what: 'evidence that arrives during an assessment is taken as assessed',
    file: 'monitor/vulnerabilities/assessing/server-store.ts',
    find: 'set assessed = g.evidence, rules',
    replace: 'set assessed = s.evidence, rules',
    tests: assessor,
  },
  {
    rule: 'NET-2.6.4',
    what: 'servers are not assessed again when the records change',
    file: 'monitor/vulnerabilities/assessing/software-store.ts',
    find: 'set due_at = svc_now() where s.due_at > svc_now()',
    replace: 'set due_at = s.due_at where s.due_at > svc_now()',
    tests: assessor,
  },
  {
    rule: 'NET-2.6.4',
    what: 'a server that fails keeps the others from being assessed',
    file: 'monitor/vulnerabilities/assessing/assessor.ts',
    find: 'if (error instanceof LeaseLost || isConnectionFailure(error)) throw error;',
    replace: 'if (error) throw error;',
    tests: assessor,
  },
  {
    rule: 'NET-2.6.5',
    what: 'another version of the software inherits an ignore',
    file: 'monitor/vulnerabilities/ignores/open-ignore-store.ts',
    find: ' and v.fingerprint = i.fingerprint',
    replace: '',
    tests: ignores,
  },
  {
    rule: 'NET-2.6.5',
    what: 'an address that is assigned anew inherits an ignore',
    file: 'monitor/vulnerabilities/ignores/end-ignores.ts',
    find: 'now.every(({ generation }) => generation !== one.generation)',
    replace: 'now.every(({ generation }) => generation === null)',
    tests: ignores,
  },
  {
    rule: 'NET-2.6.5',
    what: 'a check after the clock was put back is older than the one before',
    file: 'monitor/vulnerabilities/assessing/server-store.ts',
    find: "greatest(date_trunc('milliseconds', svc_now()), s.checked_at + interval '1 millisecond')",
    replace: "date_trunc('milliseconds', svc_now())",
    tests: feed,
  },
  {
    rule: 'NET-2.6.5',
    what: 'operations is not told when only the records changed',
    file: 'monitor/vulnerabilities/projection-store.ts',
    find: 'p.told_check is distinct from s.checked_at',
    replace:
      "p.told_check is distinct from s.checked_at and p.evidence_at > coalesce(p.told_check, p.evidence_at - interval '1 day')",
    tests: feed,
  },
  {
    rule: 'NET-2.7.11',
    what: 'evidence of before an assignment is delivered to the new owner',
    file: 'monitor/feeds/vulnerabilities/to-projection.ts',
    find: 'observedAtMs >= since',
    replace: 'observedAtMs >= 0 * since',
    tests: feed,
  },
  {
    rule: 'NET-2.7.11',
    what: 'ownership is not read again when a request is built',
    file: 'monitor/feeds/vulnerabilities/index.ts',
    find: 'if (!owner || keyOf(owner) !== key) {',
    replace: 'if (!owner) {',
    tests: feed,
  },
  {
    rule: 'NET-4.d',
    what: 'an answer about another scan counts',
    file: 'monitor/feeds/vulnerabilities/index.ts',
    find: 'if (!one || one.projection.scan_id !== scanId)',
    replace: 'if (!one || scanId === null)',
    tests: feed,
  },
];
