/** Faults that a proof plants into the packets of a recording, before the detector reads it. */
import type { FloodClass } from '#sensor/testing/attack-traffic.ts';
import type { RecordedFrame } from './recorded-traffic.ts';

/** Each stands for a class of errors between the packets and their kinds, and applies to one class of floods. */
export const frameFaults: readonly {
  name: string;
  class: FloodClass;
  spoil: (frame: RecordedFrame) => void;
}[] = [
  { name: 'flags of TCP are lost', class: 'syn_flood', spoil: ({ bytes }) => set(bytes, 47, 0x10) },
  {
    name: 'SYN is read without its ACK',
    class: 'synack_reflection',
    spoil: ({ bytes }) => set(bytes, 47, 2),
  },
  {
    name: 'fragments are whole datagrams',
    class: 'fragment_flood',
    spoil: ({ bytes }) => set(bytes, 20, 0, 0),
  },
  {
    name: 'source ports are lost',
    class: 'amplification',
    // Those of the target, which differ: one port of many sources would be amplification too.
    spoil: ({ bytes }) => set(bytes, 34, bytes[36] ?? 0, bytes[37] ?? 0),
  },
  { name: 'protocols are lost', class: 'protocol_flood', spoil: ({ bytes }) => set(bytes, 23, 1) },
  { name: 'all packets are of one second', class: 'udp_flood', spoil: (frame) => stop(frame) },
  { name: 'targets are lost', class: 'icmp_flood', spoil: ({ bytes }) => set(bytes, 30, 203, 0, 113, 9) },
];

function set(bytes: Uint8Array, at: number, ...values: number[]): void {
  if (bytes.length >= at + values.length) bytes.set(values, at);
}

function stop(frame: RecordedFrame): void {
  frame.seconds = 1_700_000_000;
  frame.nanoseconds = 0;
}
