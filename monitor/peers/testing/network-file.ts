/** Files in MaxMind's format for tests: a search tree of networks, each with a record (MaxMind DB file format 2.0). */
import { parsePrefix } from '#common/ip/index.ts';

type Value = string | number | { [field: string]: Value };

/** A file with these records by network, such as `203.0.113.0/24`. IPv4 networks stand below `::/96`. */
export function networkFile(records: Readonly<Record<string, Value>>): Buffer {
  const tree: [Node, Node][] = [[null, null]];
  const data: Buffer[] = [];
  let dataBytes = 0;
  for (const [text, record] of Object.entries(records)) {
    const prefix = parsePrefix(text)!;
    const isFour = prefix.bytes.length === 4;
    const bytes = isFour ? [...new Uint8Array(12), ...prefix.bytes] : [...prefix.bytes];
    const length = prefix.length + (isFour ? 96 : 0);
    let at = 0;
    for (let bit = 0; bit < length; bit += 1) {
      const side = ((bytes[bit >> 3]! >> (7 - (bit & 7))) & 1) as 0 | 1;
      if (bit === length - 1) tree[at]![side] = { data: dataBytes };
      else {
        const next = tree[at]![side];
        if (typeof next === 'number') at = next;
        else {
          tree.push([null, null]);
          tree[at]![side] = tree.length - 1;
          at = tree.length - 1;
        }
      }
    }
    const encoded = encode(record);
    data.push(encoded);
    dataBytes += encoded.length;
  }
  const nodes = Buffer.alloc(tree.length * 8);
  // A record is a node, the number of nodes for nothing, or beyond it and the separator the place of its data.
  const numberOf = (node: Node) =>
    node === null ? tree.length : typeof node === 'number' ? node : node.data + tree.length + 16;
  for (const [i, [left, right]] of tree.entries()) {
    nodes.writeUInt32BE(numberOf(left), i * 8);
    nodes.writeUInt32BE(numberOf(right), i * 8 + 4);
  }
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_700_000_000,
    database_type: 'Test',
    ip_version: 6,
    node_count: tree.length,
    record_size: 32,
  });
  const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
  return Buffer.concat([nodes, Buffer.alloc(16), ...data, marker, metadata]);
}

type Node = null | number | { data: number };

const utf8Type = 2;
const uint32Type = 6;
const mapType = 7;

function encode(value: Value): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value);
    return Buffer.concat([control(utf8Type, text.length), text]);
  }
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(uint32Type, 4), bytes]);
  }
  const fields = Object.entries(value);
  return Buffer.concat([
    control(mapType, fields.length),
    ...fields.flatMap(([name, of]) => [encode(name), encode(of)]),
  ]);
}

function control(type: number, size: number): Buffer {
  return size < 29 ? Buffer.from([(type << 5) | size]) : Buffer.from([(type << 5) | 29, size - 29]);
}
