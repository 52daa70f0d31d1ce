/**
 * The version of svc: of all programs, packages and images, and what a sensor reports to the monitor. The specification says which
 * version brought what (NET-9.3); 0.1.24 has the queue of scan requests.
 */
export const sensorVersion = '0.1.24';
