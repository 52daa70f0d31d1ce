/** Form fields for a sensor's node, and the node's state in the inventory. */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ChosenNode, SensorState, Sensors } from '#monitor/sensors/index.ts';
import { badge, type Content, field, formatCount, html } from '#service-kit/pages/index.ts';

type Nodes = Awaited<ReturnType<Sensors['listNodes']>>;

/** Fields of the forms below. */
export const NodeBody = Type.Object({
  node: Type.Optional(Type.String({ maxLength: 300 })),
  node_name: Type.Optional(Type.String({ maxLength: 300 })),
  replaces: Type.Optional(Type.String({ maxLength: 10 })),
});

export interface TypedNode {
  node?: string | undefined;
  node_name?: string | undefined;
  replaces?: string | undefined;
  fault?: string | undefined;
}

/** The input of the form; null when it is empty, which is allowed only without nodes in the inventory. */
export function readNode(body: TypedNode | undefined): ChosenNode | null {
  const typed = body?.node_name?.trim() ?? '';
  if (typed !== '') return { name: typed, clusterId: null };
  const [, cluster, name] = /^(\d{1,15})\/(.+)$/s.exec(body?.node ?? '') ?? [];
  return name ? { name, clusterId: Number(cluster) } : null;
}

export const nodeMissing = 'Choose the node of the sensor, or enter another name.';

/** A list of the inventory's nodes, and a field for other names. */
export function nodeFields(nodes: Nodes, typed: TypedNode): Content {
  const options = nodes.map(({ clusterId, node, servers }) => ({
    value: `${clusterId}/${node}`,
    label: `${node} (cluster ${clusterId}, ${servers === 1 ? '1 server' : `${formatCount(servers)} servers`})`,
  }));
  return [
    nodes.length > 0 &&
      field({
        kind: 'select',
        name: 'node',
        label: 'Node',
        hint: 'The sensor reports for the servers of this node. Data about servers of other nodes is not counted.',
        value: typed.node ?? '',
        options: [{ value: '', label: 'Choose a node' }, ...options],
        error: typed.fault,
      }),
    field({
      name: 'node_name',
      label: nodes.length > 0 ? 'Another node' : 'Node',
      hint:
        nodes.length > 0
          ? 'For a node without servers, which is not in the list. Enter its name as in operations.'
          : 'Its name in operations. Leave empty to use the name from the sensor (SVC_SENSOR_NODE, or the host name).',
      maxLength: 255,
      value: typed.node_name ?? '',
      error: nodes.length > 0 ? undefined : typed.fault,
    }),
  ];
}

/** Field that decides about an existing sensor of the node. */
export function replaceField(typed: TypedNode): Content {
  return field({
    kind: 'checkbox',
    name: 'replaces',
    label: 'Replace the existing sensor of this node',
    hint: 'When the new sensor enrols, the old one is removed and its credential is refused. If not selected, enrolment for a node with a sensor is refused.',
    checked: typed.replaces !== undefined,
  });
}

/** The node's name, and its problems. */
export function nodeState(sensor: SensorState, nodes: Nodes, sensors: readonly SensorState[]): Content {
  const others = sensors.filter((other) => other.id !== sensor.id && isSameNode(other, sensor));
  const known = nodes.filter(
    ({ node, clusterId }) =>
      node === sensor.node && (sensor.clusterId === null || sensor.clusterId === clusterId),
  );
  const servers = known.reduce((sum, one) => sum + one.servers, 0);
  const state =
    nodes.length === 0
      ? null
      : known.length === 0
        ? badge('warn', 'not in the inventory')
        : html`<span class="hint">${servers === 1 ? '1 server' : `${formatCount(servers)} servers`}</span>`;
  return html`${sensor.node} ${state}${sensor.isNodeBound ? null : html` ${badge('neutral', 'named by the sensor')}`}${
    others.length === 0
      ? null
      : html` ${badge('warn', 'two sensors')} <span class="hint">${others.map((one) => one.hostName).join(', ')} is on this node too. Remove the one that does not run there.</span>`
  }`;
}

function isSameNode(one: SensorState, other: SensorState): boolean {
  const isSameCluster =
    one.clusterId === null || other.clusterId === null || one.clusterId === other.clusterId;
  return one.node === other.node && isSameCluster;
}

/** The command that enrols a hypervisor's sensor with this one-time token. */
export function enrolCommand(monitorUrl: string | null, request: FastifyRequest, token: string): string {
  const url = monitorUrl ?? `${request.protocol}://${request.host}`;
  return `SVC_MONITOR_URL=${url} SVC_SENSOR_ENROLMENT_TOKEN=${token} ./svc sensor run`;
}
