/**
 * This program's version, as reported to the monitor, and its Debian package's. The specification says which version brought
 * what (NET-9.3); 0.1.24 has the queue of scan requests.
 */
export const sensorVersion = '0.1.24';
