/** Choosing the node whose servers a sensor speaks for, and saying whether the inventory knows it. */
import { Type } from 'typebox';
import type { ChosenNode, SensorState, Sensors } from '#monitor/sensors/index.ts';
import { badge, type Content, field, formatCount, html } from '#service-kit/pages/index.ts';

type Nodes = Awaited<ReturnType<Sensors['listNodes']>>;

/** Fields of the forms below. */
export const NodeBody = Type.Object({
  node: Type.Optional(Type.String({ maxLength: 300 })),
  node_name: Type.Optional(Type.String({ maxLength: 300 })),
});

export interface TypedNode {
  node?: string | undefined;
  node_name?: string | undefined;
  fault?: string | undefined;
}

/** What the form says; null for nothing, which is enough only where the inventory names no node. */
export function readNode(body: TypedNode | undefined): ChosenNode | null {
  const typed = body?.node_name?.trim() ?? '';
  if (typed !== '') return { name: typed, clusterId: null };
  const [, cluster, name] = /^(\d{1,15})\/(.+)$/s.exec(body?.node ?? '') ?? [];
  return name ? { name, clusterId: Number(cluster) } : null;
}

export const nodeMissing = 'Choose the node that the sensor runs on, or type the name of another one.';

/** A list of the inventory's nodes and a field for one that it does not name. */
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
        hint: 'The sensor speaks for the servers of this node. What it tells of other nodes’ servers is not counted.',
        value: typed.node ?? '',
        options: [{ value: '', label: 'Choose a node' }, ...options],
        error: typed.fault,
      }),
    field({
      name: 'node_name',
      label: nodes.length > 0 ? 'Another node' : 'Node',
      hint:
        nodes.length > 0
          ? 'A node without servers is not in the list. Write its name as operations does.'
          : 'Its name in operations. Leave empty to take the name that the sensor gives (SVC_SENSOR_NODE, or the host name).',
      maxLength: 255,
      value: typed.node_name ?? '',
      error: nodes.length > 0 ? undefined : typed.fault,
    }),
  ];
}

/** The node's name, and what is wrong with it. */
export function nodeState(sensor: SensorState, nodes: Nodes): Content {
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
  return html`${sensor.node} ${state}${sensor.isNodeBound ? null : html` ${badge('neutral', 'named by the sensor')}`}`;
}
