/** What is wrong with an order by itself, before anything is looked up. */
import { type FieldFault, validateServerFields } from '#operations/servers/index.ts';
import type { CreateServerInput } from './order-request.ts';

export function orderFaults(input: CreateServerInput): FieldFault[] {
  return [...networkFaults(input), ...validateServerFields(input)];
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
