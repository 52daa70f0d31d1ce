/** This program's version, as the monitor is told; the same as the package's. */
export const sensorVersion = '0.1.0';
