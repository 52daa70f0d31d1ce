/**
 * Visitors of a web site: each connects from an address of its own, by TLS, asks for a page, reads it and leaves. Prints the
 * number of pages that were read.
 *
 * usage: ordinary-crowd.ts ADDRESS SECONDS AT_ONCE SOURCE_PREFIX    (such as 198.18; both other bytes differ)
 */
import { connect } from 'node:net';
import { connect as secure } from 'node:tls';

const [host, secondsText, atOnceText, prefix] = process.argv.slice(2);
const endsAt = performance.now() + Number(secondsText) * 1000;
let read = 0;
let open = 0;

function visit(): void {
  // One visitor at least has read the page, however slow the machine is.
  if (read > 0 && performance.now() >= endsAt) return;
  const localAddress = `${prefix}.${Math.floor(Math.random() * 256)}.${2 + Math.floor(Math.random() * 250)}`;
  // The certificate is of no authority, and names no address of this link.
  const socket = secure({
    socket: connect({ host: host!, port: 443, localAddress }).on('error', () => {}),
    rejectUnauthorized: false,
  });
  let bytes = 0;
  open += 1;
  socket.on('secureConnect', () => socket.write('GET /page HTTP/1.0\r\n\r\n'));
  socket.on('data', (data) => {
    bytes += data.length;
  });
  // Such as a connection that the full server did not take: this visitor leaves.
  socket.on('error', () => {});
  socket.on('close', () => {
    open -= 1;
    if (bytes > 4000) read += 1;
    visit();
    if (open === 0) process.stdout.write(`${read}\n`);
  });
}

for (let i = 0; i < Number(atOnceText); i += 1) visit();
