/**
 * A public vendor registry as a separate process with real HTTP. It prints its port, then every request as one line of
 * JSON, so that a test sees all sent data.
 */
import { createServer } from 'node:http';

const names: Readonly<Record<string, string>> = {
  '04-00-01': 'Example Networks Ltd',
  '04-00-02': '  <b>Bold & Sons</b>\u0000\u202e Ltd.  \nsecond line',
  '04-00-03': `${'x'.repeat(2_000)}`,
  '04-00-04': 'y'.repeat(100_000),
  '04-00-05': '<!doctype html><title>Welcome</title>',
  '04-00-06': '',
};

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { method, url, rawHeaders } = request;
    process.stdout.write(
      `${JSON.stringify({ method, url, rawHeaders, body: Buffer.concat(chunks).toString('hex') })}\n`,
    );
    const prefix = url!.split('/').at(-1)!;
    if (prefix === '04-00-07') response.writeHead(302, { location: '/elsewhere/04-00-01' }).end();
    else if (prefix === '04-00-08') response.writeHead(500).end('<script>our stack</script>');
    else if (prefix.startsWith('04-10-')) response.writeHead(429).end();
    else if (prefix === '04-00-09') response.destroy();
    else {
      const name = names[prefix];
      response.writeHead(name === undefined ? 404 : 200, { 'set-cookie': 'track=1' }).end(name);
    }
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' ? address!.port : ''}\n`);
});
// Ends with the test that started it, in any case.
process.stdin.on('end', () => process.exit(0)).resume();
