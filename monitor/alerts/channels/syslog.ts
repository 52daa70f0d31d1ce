/** Syslog over TLS (RFC 5424, RFC 5425): one line for each notification. It says nothing back but that the connection held. */
import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import { connect } from 'node:tls';
import { describeTransportFailure } from '#common/transport/index.ts';
import { type ChannelKind, invalidField, shaped } from './channel-kind.ts';

const limitMs = 10_000;
/** A system daemon. */
const facility = 3;
const severities = { bad: 2, warn: 4, good: 5, info: 6 };

export const syslog: ChannelKind = {
  label: 'Syslog over TLS',
  hint: 'One line in the format of RFC 5424 for each alert that opens or ends.',
  isOwnNetwork: true,
  fields: [
    {
      name: 'host',
      label: 'Host',
      placeholder: 'logs.example.net',
      parse: shaped(
        /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i,
        'Give the name of a host that is in its certificate, such as logs.example.net.',
      ),
    },
    {
      name: 'port',
      label: 'Port',
      preset: '6514',
      parse(text) {
        if (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65_535)
          throw invalidField('A port is a number from 1 to 65535.');
        return text;
      },
    },
    {
      name: 'authority',
      label: 'CA certificate',
      kind: 'textarea',
      isOptional: true,
      placeholder: '-----BEGIN CERTIFICATE-----',
      hint: 'The CA that signed the host’s certificate, as PEM. Leave empty for a public CA.',
      parse(text) {
        try {
          return new X509Certificate(text).toString();
        } catch {
          throw invalidField('The certificate can’t be read: paste it as PEM, with its BEGIN and END lines.');
        }
      },
    },
  ],
  targetOf: ({ host, port }) => `${host}:${port}`,
  async send({ host = '', port, authority }, notification, { signal }) {
    const { summary, severity, kind, source, site, tone, transition, timestamp, openedId, id } = notification;
    const words = [
      ...[`transition=${transition}`, `severity=${severity}`, `alert=${openedId ?? id}`],
      ...[`subject=${quoted(source)}`, ...(site ? [`site=${quoted(site)}`] : [])],
    ];
    const head = `<${facility * 8 + severities[tone]}>1 ${timestamp} ${hostname().slice(0, 255)} svc-monitor ${process.pid} ${kind} -`;
    const line = Buffer.from(`${head} \u{feff}${summary} ${words.join(' ')}`);
    const frame = Buffer.concat([Buffer.from(`${line.length} `), line]);
    return { error: await sendFrame(frame, { host, port: Number(port), authority, signal }) };
  },
};

const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;

/** Null when the connection took the frame and was closed in order; else why not. */
function sendFrame(
  frame: Buffer,
  {
    host,
    port,
    authority,
    signal,
  }: { host: string; port: number; authority: string | undefined; signal: AbortSignal },
): Promise<string | null> {
  return new Promise((resolve) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const socket = connect({ host, port, servername: host, ...(authority ? { ca: authority } : {}) });
    const stop = () => socket.destroy(Object.assign(new Error('limit'), { code: 'ETIMEDOUT' }));
    limit.addEventListener('abort', stop, { once: true });
    let failure: string | null = null;
    socket
      .on('secureConnect', () => socket.end(frame))
      .on('error', (error) => {
        failure = describeTransportFailure(error);
      })
      .on('close', () => {
        limit.removeEventListener('abort', stop);
        resolve(failure);
      })
      .resume();
  });
}
