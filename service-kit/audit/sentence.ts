/** What an entry of the audit trail says as a sentence, such as `Casey Customer deployed server db-1`. */
import type { ActorKind } from './actor.ts';
import type { StoredEntry } from './entry.ts';

/** An actor without a name, at the start of a sentence. */
const namelessActors: Readonly<Record<ActorKind, string>> = {
  person: 'A former member',
  key: 'An API key',
  staff: 'An operator',
  token: 'An admin project',
  operator: 'An operator',
  sensor: 'A sensor',
  system: 'The system',
  anonymous: 'A visitor',
};

/** What is done in the words of the pages, where the name of the operation has other ones; `%` is the subject. */
const phrases: Readonly<Record<string, string>> = {
  'card.set_default': 'made % the default card',
  'credit.adjust': 'adjusted the credit of %',
  'credit.charge': 'charged a card for %',
  'credit.deposit': 'added credit to %',
  'finding.end_ignore': 'stopped ignoring a finding of %',
  'finding.ignore': 'ignored a finding of %',
  'firewall.add': 'added a firewall rule to %',
  'firewall.edit': 'edited a firewall rule of %',
  'firewall.move': 'moved a firewall rule of %',
  'firewall.policies': 'changed the default actions of the firewall of %',
  'firewall.remove': 'removed a firewall rule of %',
  'firewall.replace': 'replaced the firewall rules of %',
  'firewall.switch': 'switched the firewall of %',
  'guard.switch': 'switched the guard of %',
  'invitation.accept': 'accepted the invitation of %',
  'invitation.create': 'invited %',
  'order.place': 'placed %',
  'organization.add_member': 'added %',
  'organization.remove_member': 'removed %',
  'person.change_password': 'changed the password of %',
  'person.set_password_by_link': 'set the password of % by a link',
  'protect.change_settings': 'changed the protection settings of %',
  'protect.end_ignore': 'stopped ignoring a finding of %',
  'protect.ignore_finding': 'ignored a finding of %',
  'protect.request_port_scan': 'requested a port scan of %',
  'second_factor.add_app': 'added an authenticator app',
  'second_factor.add_passkey': 'added a passkey',
  'second_factor.remove_app': 'removed an authenticator app',
  'second_factor.remove_passkey': 'removed a passkey',
  'second_factor.renew_recovery_codes': 'renewed the recovery codes',
  'server.attach_address': 'attached an address to %',
  'server.cancel_action': 'cancelled an action of %',
  'server.create': 'deployed %',
  'server.create_snapshot': 'took a snapshot of %',
  'server.delete_snapshot': 'deleted a snapshot of %',
  'server.describe': 'edited %',
  'server.detach_address': 'detached an address from %',
  'server.open_console': 'opened the console of %',
  'server.rebuild': 'rebuilt %',
  'server.reset': 'reset %',
  'server.reset_password': 'set a new root password of %',
  'server.resize': 'resized %',
  'server.restore_snapshot': 'restored a snapshot of %',
  'server.set_reverse_dns': 'set the reverse DNS of %',
  'server.shutdown': 'shut down %',
  'server.stop': 'powered off %',
  'session.end': 'signed out',
  'session.end_one': 'signed another browser out',
  'session.end_others': 'signed all other browsers out',
  'session.start': 'signed in',
  'sign_on.issue_assertion': 'signed % in at the other console',
};

/** Verbs whose past is not made by adding `d` or `ed`. */
const pasts: Readonly<Record<string, string>> = {
  cancel: 'cancelled',
  choose: 'chose',
  enrol: 'enrolled',
  give: 'gave',
  map: 'mapped',
  reset: 'reset',
  send: 'sent',
  set: 'set',
  stop: 'stopped',
};

/** Kinds of subjects that pages call otherwise. */
const kinds: Readonly<Record<string, string>> = {
  tenant: 'workspace',
  key: 'API key',
  ssh_key: 'SSH key',
};

/** Members of a new thing that belong into its sentence. */
const details = ['plan', 'image'];

/** Who did what to what; the members that changed are in the entry. */
export function sentenceOf(entry: StoredEntry): string {
  const { operation, actorKind, actorName, subjectKind, subjectId, subjectName, after } = entry;
  const who = actorName ?? namelessActors[actorKind];
  const subject = `${kinds[subjectKind] ?? subjectKind.replaceAll('_', ' ')} ${subjectName ?? subjectId}`;
  const more = details.map((name) => after?.[name]).filter((value) => typeof value === 'string');
  return [`${who} ${phraseOf(operation).replace('%', () => subject)}`, ...more].join(', ');
}

/** `thing.set_full_name` reads `set the full name of %`. */
function phraseOf(operation: string): string {
  const known = phrases[operation];
  if (known !== undefined) return known;
  const [verb = '', ...object] = (operation.split('.')[1] ?? operation).split('_');
  const past = pasts[verb] ?? (verb.endsWith('e') ? `${verb}d` : `${verb}ed`);
  return object.length === 0 ? `${past} %` : `${past} the ${object.join(' ')} of %`;
}
