/**
 * Floods an interface of this network namespace with packets that it seems to have received, from inside the kernel: 64 bytes each, to
 * random ones of 4,096 addresses (10.1.0.0/20). Prints `{"packets", "seconds", "cpuSeconds"}`.
 * Needs root.
 *
 * usage: kernel-flood.ts INTERFACE PACKETS
 */
import { readFileSync } from 'node:fs';
import koffi from 'koffi';
import { libbpf, must, openObject } from '#sensor/kernel/libbpf.ts';
import { ethernetFrame, udp4 } from './frame-sender.ts';

const liveFrames = 2;
const batch = 64;

const [name, packetsText] = process.argv.slice(2);
const packets = Number(packetsText);
const bpf = libbpf();
const xdpAttach = koffi
  .load('libbpf.so.1')
  .func('int bpf_xdp_attach(int ifindex, int program, uint32_t flags, const void *options)');
const index = Number(readFileSync(`/sys/class/net/${name}/ifindex`, 'utf8'));
const object = openObject(readFileSync(new URL('./flood.bpf.o', import.meta.url)));
object.load();
const programFd: number = bpf.programFd(bpf.findProgram(object.handle, 'flood'));
// A veth takes such frames only while a program of its own is there.
must(xdpAttach(index, programFd, 0, null), 'prepare the interface');

const frame = ethernetFrame(0x0800, udp4('203.0.113.9', '10.1.0.0', 22));
const data = koffi.alloc('uint8_t', frame.length);
new Uint8Array(koffi.view(data, frame.length)).set(frame);
const context = koffi.alloc('uint8_t', 24);
const contextView = new DataView(koffi.view(context, 24));
for (const [i, word] of [0, frame.length, 0, index, 0, 0].entries()) contextView.setUint32(i * 4, word, true);
const options = koffi.alloc('uint8_t', 80);
const view = new DataView(koffi.view(options, 80));
new Uint8Array(view.buffer).fill(0);
view.setBigUint64(0, 80n, true);
view.setBigUint64(8, koffi.address(data), true);
view.setUint32(24, frame.length, true);
view.setBigUint64(32, koffi.address(context), true);
view.setUint32(48, 24, true);
view.setUint32(60, packets, true);
view.setUint32(68, liveFrames, true);
view.setUint32(76, batch, true);
const startedAt = performance.now();
const before = process.cpuUsage();
must(bpf.testRun(programFd, options), 'send');
const seconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage(before);
must(xdpAttach(index, -1, 0, null), 'leave the interface');
object.close();
process.stdout.write(`${JSON.stringify({ packets, seconds, cpuSeconds: (user + system) / 1e6 })}\n`);
