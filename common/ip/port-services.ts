/**
 * Services by IP protocol and server port, and protocols that need no port to be told apart. Only where the port says it
 * nearly always: what evidence says of a connection comes before it.
 */

const services: Readonly<Record<string, string>> = {
  '6/20': 'FTP',
  '6/21': 'FTP',
  '6/22': 'SSH',
  '6/23': 'Telnet',
  '6/25': 'SMTP',
  '6/53': 'DNS',
  '17/53': 'DNS',
  '17/67': 'DHCP',
  '17/69': 'TFTP',
  '6/80': 'HTTP',
  '6/110': 'POP3',
  '17/123': 'NTP',
  '6/143': 'IMAP',
  '17/161': 'SNMP',
  '6/179': 'BGP',
  '6/389': 'LDAP',
  '6/443': 'HTTPS',
  '17/443': 'QUIC',
  '6/445': 'SMB',
  '6/465': 'SMTP',
  '17/500': 'IPsec IKE',
  '17/514': 'Syslog',
  '6/587': 'SMTP',
  '6/636': 'LDAP',
  '6/853': 'DNS over TLS',
  '6/993': 'IMAP',
  '6/995': 'POP3',
  '17/1194': 'OpenVPN',
  '6/1433': 'Microsoft SQL Server',
  '6/1521': 'Oracle Database',
  '6/2049': 'NFS',
  '6/3306': 'MySQL',
  '6/3389': 'Remote Desktop',
  '17/3389': 'Remote Desktop',
  '17/4500': 'IPsec NAT traversal',
  '6/5432': 'PostgreSQL',
  '6/5671': 'AMQP',
  '6/5672': 'AMQP',
  '6/5900': 'VNC',
  '6/6379': 'Redis',
  '6/8080': 'HTTP',
  '6/8443': 'HTTPS',
  '6/9200': 'Elasticsearch',
  '6/11211': 'Memcached',
  '6/27017': 'MongoDB',
  '17/51820': 'WireGuard',
};

/** Protocols that carry no ports. */
const plainProtocols: Readonly<Record<number, string>> = { 1: 'ICMP', 58: 'ICMPv6' };

/** Name of the service, null where the port tells none. */
export function serviceName(protocol: number, serverPort: number | null): string | null {
  return services[`${protocol}/${serverPort}`] ?? plainProtocols[protocol] ?? null;
}
