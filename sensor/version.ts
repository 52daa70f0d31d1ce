/** This program's version, as reported to the monitor; the same as the package's. */
export const sensorVersion = '0.1.0';
