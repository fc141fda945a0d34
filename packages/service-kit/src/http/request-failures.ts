import type { FastifyRequest } from 'fastify';
import { FailureLogs } from '../logging/failure-log.ts';

/** Who sent a request, as far as that is known by now. The first known field stands for the account. */
export type CallerFields = (
  request: FastifyRequest,
) => Readonly<Record<string, string | undefined>>;

/** A line about a failed request, to which its method and route are added. */
interface FailureLine {
  readonly level: 'error' | 'warn';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Bounds the lines about failed requests, which a client can repeat as often as it likes: one a minute for each account, route
 * and kind of failure. The others have one at debug level. The metrics count all.
 */
export class RequestFailures {
  readonly #caller: CallerFields;
  readonly #logs = new FailureLogs();

  /** @param caller who sent a request; its first known field stands for the account */
  constructor(caller: CallerFields) {
    this.#caller = caller;
  }

  /** Logs a failure; at debug level if there was a line about one of this kind a minute ago. */
  note(request: FastifyRequest, kind: string, { level, message, fields }: FailureLine): void {
    const { method, log } = request;
    const route = request.routeOptions.url;
    const account = Object.values(this.#caller(request)).find((field) => field !== undefined);
    const line = { method, route, ...fields };
    const isLogged = this.#logs.note([account, method, route, kind].join(' '), (omitted) =>
      log[level]({ ...line, omitted }, message),
    );
    if (!isLogged) log.debug(line, message);
  }
}
