import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Intake, Throttled } from '#monitor/intake/index.ts';
import { HttpError, onClosed } from '#service-kit/http/index.ts';
import { sensorOf } from './authenticate.ts';

/** A hook that admits a sensor's upload, or answers when to retry, before the body is read. */
export function admitTo(intake: Pick<Intake, 'admit'>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    try {
      onClosed(reply, intake.admit(sensorOf(request).id));
    } catch (error) {
      if (!(error instanceof Throttled)) throw error;
      throw new HttpError(
        429,
        { code: 'intake_throttled', message: error.message },
        { 'retry-after': String(error.retryAfterSeconds) },
      );
    }
  };
}
