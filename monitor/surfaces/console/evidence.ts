/** What named an application, in words. */
const evidenceWords: Readonly<Record<string, string>> = {
  ip_protocol: 'IP protocol',
  tls_sni: 'TLS name',
  tls_outer: 'TLS outer name',
  http_host: 'HTTP host',
  http_connect: 'HTTP CONNECT',
  dns: 'DNS answer',
};

/** Without evidence from the wire the port names it, or nothing does. */
export function evidenceText(row: { evidence: string; isAttributed: boolean }): string {
  return evidenceWords[row.evidence] ?? (row.isAttributed ? 'port' : 'none');
}
