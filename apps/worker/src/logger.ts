import type { FastifyBaseLogger } from 'fastify';

/** The logger of the worker: pino's interface, as Fastify declares it. */
export type WorkerLogger = FastifyBaseLogger;
