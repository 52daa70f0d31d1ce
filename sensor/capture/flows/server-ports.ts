/**
 * Guesses which of two ports is the server's, for flows whose start was not seen: ports of common services first, then
 * other ports below 1024, then the rest.
 */

/** Ports of common services, by TCP or UDP. */
const services = [
  20, 21, 22, 23, 25, 53, 67, 69, 80, 88, 110, 111, 119, 123, 135, 139, 143, 161, 179, 389, 443, 445, 465,
  500, 514, 515, 548, 554, 587, 623, 631, 636, 853, 873, 989, 990, 993, 995, 1080, 1194, 1433, 1521, 1701,
  1723, 1883, 1900, 2049, 2082, 2083, 2086, 2087, 2181, 2222, 2375, 2376, 2379, 3128, 3260, 3306, 3389, 3478,
  4433, 4500, 4789, 5060, 5061, 5222, 5269, 5353, 5432, 5433, 5671, 5672, 5900, 5901, 5938, 5984, 5985, 5986,
  6379, 6443, 6667, 6697, 8000, 8006, 8008, 8080, 8081, 8086, 8088, 8123, 8333, 8443, 8448, 8472, 8883, 8888,
  9000, 9042, 9090, 9092, 9100, 9200, 9300, 9418, 9443, 10000, 10050, 10051, 10250, 11211, 15672, 19132,
  25565, 26379, 27015, 27017, 30120, 32400, 50051, 51820, 64738,
];

const grades = new Uint8Array(65_536);
grades.fill(1, 1, 1024);
for (const port of services) grades[port] = 2;

/** First port of the range that systems give to clients. */
const clientPortsFrom = 32_768;

/**
 * True when, judged by its ports, the packet from `source` to `target` comes from the server. `isConnection` is for
 * TCP, where the port range counts too. For datagrams between two unknown ports either side may have sent first.
 */
export function isFromServer(source: number, target: number, isConnection: boolean): boolean {
  const difference = grades[source]! - grades[target]!;
  if (difference !== 0) return difference > 0;
  return isConnection && grades[source] === 0 && source < clientPortsFrom && target >= clientPortsFrom;
}
