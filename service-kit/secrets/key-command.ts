/**
 * A key management service, reached by a program that the operator names.
 *
 * `PROGRAM … wrap` gets a data key in Base64 on standard input and answers with one line of text, the wrapped key;
 * `PROGRAM … unwrap` gets that line and answers with the data key in Base64. The key that wraps never comes here.
 */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { CodedError } from '#common/errors/index.ts';
import { keyBytes } from './envelope.ts';
import type { KeyWrapper } from './key-wrapper.ts';

const timeoutMs = 30_000;
const wrappedMax = 16_384;

/** `commandLine` is split at spaces; no shell reads it. */
export function createKeyCommand(commandLine: string): KeyWrapper {
  const [program = '', ...args] = commandLine.split(/\s+/).filter((part) => part !== '');
  const ask = (verb: 'wrap' | 'unwrap', input: string) => run(program, [...args, verb], input);
  return {
    place: `the key command ${program}`,
    prepare: async () => {},
    async wrap(key) {
      const wrapped = await ask('wrap', key.toString('base64'));
      if (wrapped === '' || wrapped.length > wrappedMax || wrapped.includes('\n'))
        throw fault(`${program} wrap must answer with one line of at most ${wrappedMax} characters`);
      return { wrapped, wrappedBy: 'command' };
    },
    async unwrap({ wrapped, wrappedBy }) {
      if (wrappedBy !== 'command')
        throw new CodedError(
          'secrets.wrong_key',
          `The secrets of this database need the key ${wrappedBy} of a key file, not ${program}. Unset the key command, or change to it with rewrap-secrets-key. Nothing was changed.`,
        );
      const key = Buffer.from(await ask('unwrap', wrapped), 'base64');
      if (key.length !== keyBytes)
        throw fault(`${program} unwrap must answer with ${keyBytes} bytes in Base64`);
      return key;
    },
  };
}

async function run(program: string, args: readonly string[], input: string): Promise<string> {
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  // A program that does not read its input closes the pipe early; its exit code tells.
  child.stdin.on('error', () => {});
  child.stdin.end(`${input}\n`);
  const ended = new Promise<string | null>((done) => {
    child.once('error', (error) => done(error.message));
    child.once('close', (code, signal) =>
      done(code === 0 ? null : `it ended with ${signal === null ? `exit code ${code}` : signal}`),
    );
  });
  const [output, said, failure] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (failure === null) return output.trim();
  const words = said.trim().slice(-300);
  throw fault(`${program} ${args.at(-1)} failed: ${failure}${words === '' ? '' : ` (${words})`}`);
}

function fault(what: string): CodedError {
  return new CodedError(
    'secrets.no_key',
    `The key of the secrets in the database is not to be had: ${what}. Nothing was changed.`,
  );
}
