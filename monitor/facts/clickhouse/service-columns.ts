/** Columns of services, and what they are in answers. */
import { plain } from './statement.ts';

/** A port as the tables hold it. */
export const portOf = (port: number): number | null => (port < 0 ? null : port);

/** Those without a port last. */
export const portsInOrder = plain('server_port = -1, server_port');
