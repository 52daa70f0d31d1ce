/** Sends COUNT datagrams of BYTES to the time service at ADDRESS, one after another, each answered; prints the answered count. */
import { createSocket } from 'node:dgram';
import { wires } from '../traffic/wires.ts';

const [address, count, bytes] = process.argv.slice(2) as [string, string, string];
const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
let answered = 0;
const send = () => socket.send(Buffer.alloc(Number(bytes)), wires.time.port, address);
socket.on('message', () => {
  answered += 1;
  if (answered < Number(count)) return send();
  socket.close();
  process.stdout.write(String(answered));
});
send();
