/** The version of svc: of all programs, packages and images, and what a sensor reports to the monitor. */
export const sensorVersion = '0.2.0';

/** The newest version of the specification (NET-9.3) whose wire the sensor speaks: it has the queue of scan requests. */
export const wireVersion = '0.1.24';

/** What `--version` prints. */
export const versionText = `${sensorVersion} (sensor wire of ${wireVersion})`;
