import type { FastifyBaseLogger } from 'fastify';
import { HAS_REQUEST_ID } from '../logging/logger.ts';

type Bindings = Parameters<FastifyBaseLogger['child']>[0];
type ChildOptions = Parameters<FastifyBaseLogger['child']>[1];

const METHODS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent', 'child'] as const;

/**
 * A request logger that is created at its first line. Most requests write none, and creating one is a large part of
 * the cost of a small request.
 */
class LazyLogger {
  readonly level: string;
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Bindings;
  readonly #options: ChildOptions;
  #made: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Bindings, options: ChildOptions) {
    this.level = parent.level;
    this.#parent = parent;
    this.#bindings = bindings;
    this.#options = options;
  }

  made(): FastifyBaseLogger {
    if (this.#made === undefined) {
      this.#made = this.#parent.child(this.#bindings, this.#options);
      // Its bindings have the request id.
      Object.assign(this.#made, { [HAS_REQUEST_ID]: true });
    }
    return this.#made;
  }
}

for (const method of METHODS) {
  Object.defineProperty(LazyLogger.prototype, method, {
    value(this: LazyLogger, ...args: unknown[]): unknown {
      const logger = this.made();
      return Reflect.apply(logger[method], logger, args);
    },
  });
}

/** The factory of request loggers for Fastify. */
export function makeRequestLogger(
  parent: FastifyBaseLogger,
  bindings: Bindings,
  options: ChildOptions,
): FastifyBaseLogger {
  // The methods are defined above in a way that the type does not express.
  return new LazyLogger(parent, bindings, options) as unknown as FastifyBaseLogger;
}
