/** What is wrong with an order by itself, before anything is looked up. */
import type { CreateServerInput } from './create-server.ts';
import { wordFaults } from './describe-server.ts';
import type { FieldFault } from './server-faults.ts';

/** One line: options may stand before the kind of the key, a comment behind its body. */
const publicKeyPattern = /^(\S.* )?(ssh-|ecdsa-sha2-|sk-)\S+ AAAA\S*( .*)?$/;

export function orderFaults(input: CreateServerInput): FieldFault[] {
  return [...networkFaults(input), ...wordFaults(input), ...keyFaults(input)];
}

function networkFaults(input: CreateServerInput): FieldFault[] {
  if (input.networkId !== undefined) return [];
  const faults: FieldFault[] = [];
  const required = 'names the network without which nothing would lead to the server';
  if (input.publicIp === false) faults.push({ path: 'network_id', code: 'required', message: required });
  if (input.networkIp !== undefined)
    faults.push({ path: 'network_ip', code: 'required_with', message: 'needs `network_id` beside it' });
  return faults;
}

/** A private key pasted by mistake, or half of a public one, would only show when nobody gets in. */
function keyFaults({ sshKeys = [] }: CreateServerInput): FieldFault[] {
  if (sshKeys.every((key) => publicKeyPattern.test(key.trim()))) return [];
  const message = 'must be public keys, one a line, such as `ssh-ed25519 AAAA… me@home`';
  return [{ path: 'ssh_keys', code: 'pattern', message }];
}
