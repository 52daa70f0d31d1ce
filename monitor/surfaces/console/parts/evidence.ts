/** Labels for the evidence of an application's name. */
const evidenceWords: Readonly<Record<string, string>> = {
  ip_protocol: 'IP protocol',
  tls_sni: 'TLS name',
  tls_outer: 'TLS public name (ECH)',
  http_host: 'HTTP host',
  http_connect: 'HTTP CONNECT',
  dns: 'DNS answer',
};

/** Without evidence from the traffic, the port gives the name, or there is none. */
export function evidenceText(row: { evidence: string; isAttributed: boolean }): string {
  return evidenceWords[row.evidence] ?? (row.isAttributed ? 'port' : 'none');
}
