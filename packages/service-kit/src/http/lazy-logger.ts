import type { FastifyBaseLogger } from 'fastify';

type Bindings = Parameters<FastifyBaseLogger['child']>[0];
type ChildOptions = Parameters<FastifyBaseLogger['child']>[1];

const METHODS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent', 'child'] as const;

/**
 * A request's logger that is made at its first line: most requests write none,
 * and making one costs a good part of what a small request does.
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
    this.#made ??= this.#parent.child(this.#bindings, this.#options);
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

/** Fastify's factory of request loggers. */
export function makeRequestLogger(
  parent: FastifyBaseLogger,
  bindings: Bindings,
  options: ChildOptions,
): FastifyBaseLogger {
  // The methods are defined above, where the type cannot see them.
  return new LazyLogger(parent, bindings, options) as unknown as FastifyBaseLogger;
}
