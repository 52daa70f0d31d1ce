/**
 * A mail server in a process of its own. Takes mail from who signs in as `monitor`, writes one line of JSON about each
 * message, and answers the first attempt of a message to `later@…` with a temporary failure.
 */
import { SMTPServer } from 'smtp-server';

/** What the server writes about each mail. */
export interface Mail {
  to: string[];
  /** The `Message-ID`. */
  id: string;
  /** The `In-Reply-To` and `References`. */
  answers: string[];
  subject: string;
  body: string;
}

const later = new Set<string>();
const server = new SMTPServer({
  authOptional: false,
  allowInsecureAuth: true,
  disabledCommands: ['STARTTLS'],
  onAuth({ username, password }, _session, done) {
    if (username === 'monitor' && password === 'p@ss word') done(null, { user: username });
    else done(new Error('who are you, p@ss word?'));
  },
  onData(stream, session, done) {
    const pieces: Buffer[] = [];
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('end', () => {
      const text = Buffer.concat(pieces).toString();
      const to = session.envelope.rcptTo.map((one) => one.address);
      const header = (name: string) =>
        new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'im').exec(text)?.[1] ?? '';
      const id = header('Message-ID');
      if (to.some((one) => one.startsWith('later@')) && !later.has(id)) {
        later.add(id);
        return done(Object.assign(new Error('not now, p@ss word'), { responseCode: 451 }));
      }
      const body = text.slice(text.indexOf('\r\n\r\n') + 4);
      const answers = [header('In-Reply-To'), header('References')].filter((text) => text !== '');
      const mail: Mail = { to, id, answers, subject: header('Subject'), body };
      process.stdout.write(`${JSON.stringify(mail)}\n`);
      done();
    });
  },
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.server.address() as { port: number };
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
process.stdin.on('data', () => process.stdout.write('mark\n'));
