/** Services that answer a small spoofed question with a large answer, and what such an answer looks like. */

export interface Reflector {
  /** The answer's source port. */
  port: number;
  answer: Uint8Array;
}

const answerBytes = 1200;

export const reflectors: readonly Reflector[] = [
  { port: 19, answer: Buffer.alloc(1024, ' !"#$%&\'()*+,-./0123456789:;<=>?@ABCDEFG\r\n') },
  { port: 53, answer: dnsAnswer() },
  // The list of a time server's last clients: mode 7, request 42, six entries of 72 bytes.
  { port: 123, answer: startingWith(Buffer.from('d700032a00060048', 'hex'), 440) },
  { port: 389, answer: startingWith(Buffer.from('308405a402010764840000059b0400', 'hex'), answerBytes) },
  {
    port: 1900,
    answer: Buffer.from(
      'HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nST: upnp:rootdevice\r\nUSN: uuid:00000000-0000-0000-0000-000000000000::upnp:rootdevice\r\nEXT:\r\nSERVER: example UPnP/1.1\r\nLOCATION: http://192.0.2.1:1900/root.xml\r\n\r\n',
    ),
  },
  // The frame header of UDP, then a value.
  {
    port: 11_211,
    answer: startingWith(Buffer.from('\0\0\0\0\0\x01\0\0VALUE a 0 1400\r\n', 'latin1'), 1400),
  },
];

function startingWith(head: Uint8Array, bytes: number): Uint8Array {
  const answer = Buffer.alloc(bytes, 'a');
  answer.set(head);
  return answer;
}

/** An answer to `example.com ANY` with text records; it parses. */
function dnsAnswer(): Uint8Array {
  const text = 'a'.repeat(255);
  const question = Buffer.from('\x07example\x03com\0\0\xff\0\x01', 'latin1');
  const record = Buffer.concat([
    // The name is the question's; type TXT, class IN, an hour; 256 bytes of data.
    Buffer.from('c00c0010000100000e100100', 'hex'),
    Buffer.from(`\xff${text}`, 'latin1'),
  ]);
  const records = 5;
  const head = Buffer.from(`5a5a81800001${records.toString(16).padStart(4, '0')}00000000`, 'hex');
  return Buffer.concat([head, question, ...Array.from({ length: records }, () => record)]);
}
